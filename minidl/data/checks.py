"""Checks of the numbers and names that a caller gives."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Iterable


def at_least(name: str, value: int, minimum: int) -> int:
    """`value` as an int; TypeError where it is not a whole number, ValueError where it is below `minimum`."""
    try:
        whole = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not {value!r}") from None
    if whole < minimum:
        raise ValueError(f"{name} must be at least {minimum}, not {whole}")
    return whole


def one_of(kind: str, name: str, names: Iterable[str]) -> str:
    """`name` if it is among `names`; else ValueError with the nearest of them and all choices."""
    choices = list(names)
    if name in choices:
        return name
    close = difflib.get_close_matches(str(name), choices, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise ValueError(f"there is no {kind} {name!r}: {hint}choose one of {', '.join(choices)}")


def replica(num_replicas: int, rank: int) -> tuple[int, int]:
    """`(num_replicas, rank)` as ints; ValueError where there is no such rank."""
    count = at_least("num_replicas", num_replicas, 1)
    number = at_least("rank", rank, 0)
    if number >= count:
        raise ValueError(f"rank must be below num_replicas={count}, not {number}: ranks count from 0")
    return count, number
