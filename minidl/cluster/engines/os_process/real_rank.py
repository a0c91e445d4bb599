"""What a rank does because it is a process: stated work takes real time, and faults on purpose are signals."""

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

LOOK_SECONDS = 1e-3  # how often a rank that sleeps looks whether a message has arrived


class RealRank:
    """The part of an Endpoint that is the same on processes and under MPI."""

    _last_words: Callable[[], None]  # called before the rank dies or stops on purpose
    _helpers: Helpers

    @property
    def unwaited(self) -> Begun | None:
        """What the end of the program waits for, or was waiting for when that failed."""
        return self._helpers.last_begun

    @abstractmethod
    def is_done(self, pending: Pending) -> bool:
        """Whether the operation is done, which the mailbox of the engine knows."""

    def charge(
        self, *, seconds: float = 0.0, flops: float = 0.0, nbytes: float = 0.0, until: Pending | None = None
    ) -> None:
        """Sleep: work that a program only states is not done here."""
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
        """Nothing: the reduction has taken its time."""

    def die(self) -> NoReturn:
        self._last_words()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("a killed process goes on")

    def freeze(self) -> NoReturn:
        self._last_words()
        while True:
            os.kill(os.getpid(), signal.SIGSTOP)
