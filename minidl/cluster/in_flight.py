"""Arrays in flight: those that an unfinished operation still reads or writes, until its `wait()` has returned.

The rule is MPI's: while an operation reads an array, others may read it too; while one writes it, no other may use it.
All arrays that a rank passes to its communicators are checked, also those in lists, tuples and dicts. A numpy statement
that changes an array in flight is not noticed.
"""

from __future__ import annotations

import itertools
import threading
from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.exceptions import TooHardError
from numpy.lib.array_utils import byte_bounds

Array = npt.NDArray[Any]

EXACT_STEPS = 10_000  # limit of the search for an element that two interleaved views share; beyond it, assume one


class Memory(NamedTuple):
    """An array and the range of its addresses."""

    array: Array
    start: int
    end: int


class Use(NamedTuple):
    """An operation in flight: its name, the line that began it, and the intervals that it reads and writes."""

    operation: str
    place: str
    reads: list[Interval]
    writes: list[Interval]


class Interval(NamedTuple):
    """Memory in use. Numbers increase with time and are unique, so intervals sort by their first two fields."""

    start: int
    number: int
    memory: Memory
    key: Any


class IntervalIndex:
    """Finds intervals by address, so that a new operation need not be compared with each of a thousand in flight.

    Each power of two has a list of the intervals up to that length, sorted by start: those that overlap [start, end)
    begin after start - length.
    """

    def __init__(self) -> None:
        self._of_length: dict[int, list[Interval]] = {}

    def add(self, interval: Interval) -> None:
        insort(self._of_length.setdefault(_length_class(interval), []), interval)

    def remove(self, interval: Interval) -> None:
        intervals = self._of_length[_length_class(interval)]
        del intervals[bisect_left(intervals, interval)]
        if not intervals:
            del self._of_length[_length_class(interval)]

    def overlapping(self, memory: Memory) -> Iterator[Interval]:
        """Yield the intervals whose arrays share an element with this one."""
        for length, intervals in self._of_length.items():
            index = bisect_left(intervals, (memory.start - (1 << length),))
            while index < len(intervals) and intervals[index].start < memory.end:
                interval = intervals[index]
                if interval.memory.end > memory.start and _share(interval.memory.array, memory.array):
                    yield interval
                index += 1


class InFlight:
    """The operations of one rank that are in flight; `uses` maps the key passed to `begin` and `end` to each.

    The program and its background work share it.
    """

    def __init__(self) -> None:
        self.uses: dict[Any, Use] = {}
        self._read = IntervalIndex()
        self._written = IntervalIndex()
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def check(self, operation: str, reads: Any, writes: Any) -> None:
        """Raise RuntimeError if the operation would use an array that an operation in flight must not share."""
        to_read, to_write = _memory(reads), _memory(writes)
        with self._lock:
            found = [(e.number, e.key, "writes") for m in to_read + to_write for e in self._written.overlapping(m)]
            found += [(e.number, e.key, "reads") for m in to_write for e in self._read.overlapping(m)]
            if not found:
                return
            _, key, verb = min(found, key=lambda interval: interval[0])
            use = self.uses[key]
        raise RuntimeError(
            f"{operation} uses an array that {use.operation} at {use.place} still {verb}: "
            "call wait() on what that returned first, or pass x.copy()"
        )

    def begin(self, key: Any, operation: str, place: str, reads: Any, writes: Any) -> None:
        """Note that the operation uses these arrays until `end`."""
        to_read, to_write = _memory(reads), _memory(writes)
        if not to_read and not to_write:
            return
        with self._lock:
            use = Use(operation, place, self._intervals(to_read, key), self._intervals(to_write, key))
            for interval in use.reads:
                self._read.add(interval)
            for interval in use.writes:
                self._written.add(interval)
            self.uses[key] = use

    def end(self, key: Any) -> None:
        """Note that the operation has ended."""
        with self._lock:
            use = self.uses.pop(key, None)
            if use is None:
                return
            for interval in use.reads:
                self._read.remove(interval)
            for interval in use.writes:
                self._written.remove(interval)

    def _intervals(self, memories: list[Memory], key: Any) -> list[Interval]:
        return [Interval(memory.start, next(self._numbers), memory, key) for memory in memories]


def _length_class(interval: Interval) -> int:
    return (interval.memory.end - interval.memory.start).bit_length()


def _memory(x: Any) -> list[Memory]:
    return [Memory(array, *byte_bounds(array)) for array in _arrays(x) if array.size]


def _arrays(x: Any) -> Iterator[Array]:
    waiting, seen = [x], set[int]()  # a list may contain itself
    while waiting:
        item = waiting.pop()
        if isinstance(item, np.ndarray):
            yield item
        elif isinstance(item, (list, tuple, dict)) and id(item) not in seen:
            seen.add(id(item))
            waiting.extend(item.values() if isinstance(item, dict) else item)


def _share(a: Array, b: Array) -> bool:
    try:
        return np.shares_memory(a, b, max_work=EXACT_STEPS)  # type: ignore[arg-type]  # numpy's stub knows two values
    except TooHardError:
        return True
