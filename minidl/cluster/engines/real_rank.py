"""What a rank does because it is a process: stated work takes real time, and faults on purpose are signals."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import NoReturn

FLOPS_PER_S = 1e10  # what one core is taken to do where a program states its work: `comm.compute(flops=...)`
BYTES_PER_S = 1e10


class RealRank:
    """The part of an Endpoint that is the same on processes and under MPI."""

    _last_words: Callable[[], None]  # called before the rank dies or stops on purpose

    def charge(self, *, seconds: float = 0.0, flops: float = 0.0, nbytes: float = 0.0) -> None:
        """Sleep: work that a program only states is not done here."""
        time.sleep(seconds + max(flops / FLOPS_PER_S, nbytes / BYTES_PER_S))

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
