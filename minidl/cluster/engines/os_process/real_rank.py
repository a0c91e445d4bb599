"""The behaviour of a rank that is a process: stated work takes real time, and planned faults are signals."""

from __future__ import annotations

import os
import signal
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import NoReturn

from minidl.cluster.engines.os_process.helper_threads import Helpers
from minidl.cluster.engines.protocol import BYTES_PER_S, FLOPS_PER_S, Pending
from minidl.cluster.trace.recorder import Begun

LOOK_SECONDS = 1e-3  # between two looks of a sleeping rank for a message


class RealRank:
    """The methods of an Endpoint that are the same on processes and under MPI."""

    _last_words: Callable[[], None]  # called before a planned fault kills or stops the rank
    _helpers: Helpers

    @property
    def unwaited(self) -> Begun | None:
        """The concurrent operation that the program never waited for, and that its end is waiting for."""
        return self._helpers.last_begun

    @abstractmethod
    def is_done(self, pending: Pending) -> bool:
        """Whether the operation is done; implemented by the engine's mailbox."""

    def charge(
        self, *, seconds: float = 0.0, flops: float = 0.0, nbytes: float = 0.0, until: Pending | None = None
    ) -> None:
        """Sleep, because the program only states this work and does not do it."""
        seconds += max(flops / FLOPS_PER_S, nbytes / BYTES_PER_S)
        if until is None:
            time.sleep(seconds)
            return
        end = time.perf_counter() + seconds
        while not self.is_done(until) and (left := end - time.perf_counter()) > 0:
            time.sleep(min(left, LOOK_SECONDS))

    def peek(self, pending: Pending) -> bool:
        return self.is_done(pending)

    def charge_reduction(self, nbytes: int) -> None:
        """Do nothing, because the reduction itself has taken real time."""

    def die(self) -> NoReturn:
        self._last_words()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("a killed process goes on")

    def freeze(self) -> NoReturn:
        self._last_words()
        while True:
            os.kill(os.getpid(), signal.SIGSTOP)
