"""Whole numbers that count the operations with them, for exercises whose answer must not try all possibilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


class Cost(int):
    """A whole number that counts the operations with it and with its results; beyond a limit they raise an error.

    It refuses to become a number that does not count, also when numpy makes an array of it.
    """

    left, beyond = 0, ""

    def __hash__(self) -> int:
        return int.__hash__(self)

    def __int__(self) -> NoReturn:
        raise TypeError("a cost of the check stays as it is: converted to another type, it would not count operations")

    __float__ = __index__ = __int__


def counted_operation(name: str) -> Callable[..., Any]:
    """An operation of int that counts, and whose whole numbers count, too."""
    plain = getattr(int, name)

    def operation(self: Cost, *others: Any) -> Any:
        Cost.left -= 1
        if Cost.left < 0:
            raise RuntimeError(Cost.beyond)
        result = plain(self, *others)
        return Cost(result) if type(result) is int else result

    return operation


for _name in (
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__floordiv__", "__rfloordiv__",
    "__truediv__", "__rtruediv__", "__mod__", "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__",
    "__neg__", "__pos__", "__abs__", "__round__", "__trunc__", "__floor__", "__ceil__", "__or__", "__xor__",
    "__and__", "__lshift__", "__rshift__", "__pow__",
):  # fmt: skip
    setattr(Cost, _name, counted_operation(_name))


@contextmanager
def counting(costs: list[int], operations: int, beyond: str) -> Iterator[list[Any]]:
    """These numbers as Costs with at most that many operations; `beyond` is the error of one more.

    At the end the list `costs` has what became of the Costs, so that the check sees changes.
    """
    Cost.left, Cost.beyond = operations, beyond
    given = [Cost(cost) for cost in costs]
    yield given
    Cost.left = operations  # for the check's own reading of the result
    costs[:] = [int.__int__(cost) if isinstance(cost, Cost) else cost for cost in given]
