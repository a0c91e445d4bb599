"""When something has to be over, by a clock that stands still while the process waits for a core."""

from __future__ import annotations

import time
from collections.abc import Callable

MOST_STARVED = 2.0
"""Seconds of starvation that do not count, for each second of the bound: a process can also starve itself."""


class Deadline:
    """`seconds` from now by the wall clock, without the time in which a student's process was starved.

    starved: how many seconds it has been so far; see `limits.starved`.
    """

    def __init__(self, seconds: float, starved: Callable[[], float]) -> None:
        self.seconds = seconds
        self.began = time.monotonic()
        self._starved = starved
        self._starved_before = starved()

    def time(self) -> float:
        """When it is over, by time.monotonic, at the earliest: starvation is looked up when its seconds have passed."""
        at = self.began + self.seconds
        if time.monotonic() < at:
            return at
        lost = max(0.0, self._starved() - self._starved_before)
        return at + min(lost, MOST_STARVED * max(0.0, self.seconds))

    def leave_out(self, seconds: float) -> None:
        """Do not count these seconds, in which somebody else was at work."""
        self.began += seconds

    def left(self) -> float:
        """Seconds until then; negative when it is over."""
        return self.time() - time.monotonic()

    def is_over(self) -> bool:
        return self.left() <= 0.0
