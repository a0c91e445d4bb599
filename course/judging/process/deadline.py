"""A time limit whose clock stops while the student's process waits for a core."""

from __future__ import annotations

import time
from collections.abc import Callable

MOST_STARVED = 2.0
"""Most seconds without a core that are left out, per second of the limit: a process can also starve itself."""


class Deadline:
    """`seconds` from now by the wall clock, extended by the time in which a student's process had no core.

    starved: returns the seconds without a core so far; see `limits.starved`.
    """

    def __init__(self, seconds: float, starved: Callable[[], float]) -> None:
        self.seconds = seconds
        self.began = time.monotonic()
        self._starved = starved
        self._starved_before = starved()

    def time(self) -> float:
        """The deadline by time.monotonic. Time without a core is measured only when the seconds have passed."""
        at = self.began + self.seconds
        if time.monotonic() < at:
            return at
        lost = max(0.0, self._starved() - self._starved_before)
        return at + min(lost, MOST_STARVED * max(0.0, self.seconds))

    def leave_out(self, seconds: float) -> None:
        """Extend the deadline by seconds in which the check itself computed."""
        self.began += seconds

    def left(self) -> float:
        """Seconds until the deadline; negative after it."""
        return self.time() - time.monotonic()

    def is_over(self) -> bool:
        return self.left() <= 0.0
