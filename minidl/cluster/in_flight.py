"""Arrays in flight: those that an operation still reads or writes, from its begin until `wait()` has returned.

The rule is MPI's: while an operation reads an array, others may read it too; while one writes it, none may use it. All
arrays that a rank hands to its communicators are checked against it, those in lists, tuples and dicts included. A
statement of numpy that changes an array in flight cannot be seen.
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

EXACT_STEPS = 10_000  # to find out whether two interleaved views share an element; if it takes more, they do


class Memory(NamedTuple):
    """An array, and the addresses between which it lies."""

    array: Array
    start: int
    end: int


class Use(NamedTuple):
    """An operation in flight, the line that began it, and its entries among all that is read and written."""

    operation: str
    place: str
    reads: list[Entry]
    writes: list[Entry]


class Entry(NamedTuple):
    """Memory in use. The numbers grow with time, and no two are equal, so that entries sort by their first two."""

    start: int
    number: int
    memory: Memory
    key: Any


class Entries:
    """Entries by address, so that a thousand operations in flight are not all looked at for each new one.

    There is a list for each power of two of the length: what overlaps with [start, end) begins after start minus that.
    """

    def __init__(self) -> None:
        self._of_length: dict[int, list[Entry]] = {}

    def add(self, entry: Entry) -> None:
        insort(self._of_length.setdefault(_length_class(entry), []), entry)

    def remove(self, entry: Entry) -> None:
        entries = self._of_length[_length_class(entry)]
        del entries[bisect_left(entries, entry)]
        if not entries:
            del self._of_length[_length_class(entry)]

    def overlapping(self, memory: Memory) -> Iterator[Entry]:
        """The entries that share an element with the array."""
        for length, entries in self._of_length.items():
            index = bisect_left(entries, (memory.start - (1 << length),))
            while index < len(entries) and entries[index].start < memory.end:
                entry = entries[index]
                if entry.memory.end > memory.start and _share(entry.memory.array, memory.array):
                    yield entry
                index += 1


class InFlight:
    """The operations of one rank that are in flight; `uses` has them by a key that `begin` and `end` are given.

    The program and its work in the background share it.
    """

    def __init__(self) -> None:
        self.uses: dict[Any, Use] = {}
        self._read = Entries()
        self._written = Entries()
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def check(self, operation: str, reads: Any, writes: Any) -> None:
        """Raise RuntimeError if the operation would use an array that one in flight excludes it from."""
        to_read, to_write = _memory(reads), _memory(writes)
        with self._lock:
            found = [(e.number, e.key, "writes") for m in to_read + to_write for e in self._written.overlapping(m)]
            found += [(e.number, e.key, "reads") for m in to_write for e in self._read.overlapping(m)]
            if not found:
                return
            _, key, verb = min(found, key=lambda entry: entry[0])
            use = self.uses[key]
        raise RuntimeError(
            f"{operation} uses an array that {use.operation} at {use.place} still {verb}: "
            "call wait() on what that returned first, or pass x.copy()"
        )

    def begin(self, key: Any, operation: str, place: str, reads: Any, writes: Any) -> None:
        """The operation uses these arrays until `end`."""
        to_read, to_write = _memory(reads), _memory(writes)
        if not to_read and not to_write:
            return
        with self._lock:
            use = Use(operation, place, self._entries(to_read, key), self._entries(to_write, key))
            for entry in use.reads:
                self._read.add(entry)
            for entry in use.writes:
                self._written.add(entry)
            self.uses[key] = use

    def end(self, key: Any) -> None:
        """The program knows that the operation is over."""
        with self._lock:
            use = self.uses.pop(key, None)
            if use is None:
                return
            for entry in use.reads:
                self._read.remove(entry)
            for entry in use.writes:
                self._written.remove(entry)

    def _entries(self, memories: list[Memory], key: Any) -> list[Entry]:
        return [Entry(memory.start, next(self._numbers), memory, key) for memory in memories]


def _length_class(entry: Entry) -> int:
    return (entry.memory.end - entry.memory.start).bit_length()


def _memory(x: Any) -> list[Memory]:
    return [Memory(array, *byte_bounds(array)) for array in _arrays(x) if array.size]


def _arrays(x: Any) -> Iterator[Array]:
    if isinstance(x, np.ndarray):
        yield x
    elif isinstance(x, (list, tuple)):
        for item in x:
            yield from _arrays(item)
    elif isinstance(x, dict):
        yield from _arrays(list(x.values()))


def _share(a: Array, b: Array) -> bool:
    try:
        return np.shares_memory(a, b, max_work=EXACT_STEPS)  # type: ignore[arg-type]  # numpy's stub knows two values
    except TooHardError:
        return True
