"""Arrays in flight: those that an operation still reads or writes, from its begin until `wait()` has returned.

The rule is MPI's: while an operation reads an array, others may read it too; while one writes it, none may use it. All
arrays that a rank hands to its communicators are checked against it, those in lists, tuples and dicts included. A
statement of numpy that changes an array in flight cannot be seen.
"""

from __future__ import annotations

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
    """An operation in flight, the line that began it, and the memory that it reads and writes."""

    operation: str
    place: str
    reads: list[Memory]
    writes: list[Memory]


class InFlight:
    """The operations of one rank that are in flight; `uses` has them by a key that `begin` and `end` are given."""

    def __init__(self) -> None:
        self.uses: dict[Any, Use] = {}

    def check(self, operation: str, reads: Any, writes: Any) -> None:
        """Raise RuntimeError if the operation would use an array that one in flight excludes it from."""
        to_read, to_write = _memory(reads), _memory(writes)
        for use in self.uses.values():
            is_written = _overlap(to_read, use.writes) or _overlap(to_write, use.writes)
            if is_written or _overlap(to_write, use.reads):
                raise RuntimeError(
                    f"{operation} uses an array that {use.operation} at {use.place} still "
                    f"{'writes' if is_written else 'reads'}: call wait() on what that returned first, or pass x.copy()"
                )

    def begin(self, key: Any, operation: str, place: str, reads: Any, writes: Any) -> None:
        """The operation uses these arrays until `end`."""
        use = Use(operation, place, _memory(reads), _memory(writes))
        if use.reads or use.writes:
            self.uses[key] = use

    def end(self, key: Any) -> None:
        """The program knows that the operation is over."""
        self.uses.pop(key, None)


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


def _overlap(some: list[Memory], others: list[Memory]) -> bool:
    return any(a.start < b.end and b.start < a.end and _share(a.array, b.array) for a in some for b in others)


def _share(a: Array, b: Array) -> bool:
    try:
        return np.shares_memory(a, b, max_work=EXACT_STEPS)  # type: ignore[arg-type]  # numpy's stub knows two values
    except TooHardError:
        return True
