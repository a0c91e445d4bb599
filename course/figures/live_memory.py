"""How much of what a program has made is still there: the bytes that live at a moment, and the most that ever did."""

from __future__ import annotations

import gc
import tracemalloc
from types import TracebackType


class LiveMemory:
    """Counts, within `with LiveMemory(unit) as memory:`, the bytes that were made inside and still live.

    unit: bytes; what is told is in these. `memory.note()` adds what lives now to `memory.notes`; afterwards
    `memory.peak` is the most that lived at once. Python's tracemalloc counts, which sees numpy's arrays; it cannot be
    shared, so one of these cannot stand inside another (RuntimeError).

    >>> import numpy as np
    >>> with LiveMemory(unit=8000) as memory:
    ...     x = np.zeros(1000)
    ...     x = x + 1  # the new array is there before the old one goes
    ...     memory.note()
    >>> [round(note) for note in memory.notes], round(memory.peak)
    ([1], 2)
    """

    def __init__(self, unit: float = 1.0) -> None:
        self.unit = unit
        self.notes: list[float] = []
        self.peak = 0.0

    def __enter__(self) -> LiveMemory:
        if tracemalloc.is_tracing():
            raise RuntimeError("tracemalloc is at work already: one LiveMemory cannot stand inside another")
        gc.collect()
        tracemalloc.start()
        return self

    def note(self) -> None:
        """Add what lives at this moment."""
        self.notes.append(tracemalloc.get_traced_memory()[0] / self.unit)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        self.peak = tracemalloc.get_traced_memory()[1] / self.unit
        tracemalloc.stop()
