"""The bytes that a program holds at a moment, and their peak; `kept_bytes`, those that a graph keeps for backward."""

from __future__ import annotations

import gc
import tracemalloc
from types import TracebackType

from minidl.kept_arrays import kept_bytes as kept_bytes  # not public, and lectures import public names alone


class LiveMemory:
    """Measures the memory that is allocated within `with LiveMemory(unit) as memory:` and not yet freed.

    unit: bytes per unit of all results.

    `memory.note()` appends the live memory to `memory.notes`; afterwards `memory.peak` is the maximum. The counts are
    Python's tracemalloc's, which include numpy's arrays. Nesting raises RuntimeError, since tracemalloc cannot be
    shared.

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
        """Append the memory that is live now."""
        self.notes.append(tracemalloc.get_traced_memory()[0] / self.unit)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        self.peak = tracemalloc.get_traced_memory()[1] / self.unit
        tracemalloc.stop()
