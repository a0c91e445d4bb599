"""The first change that a call made to its arguments, as a sentence. Values are compared bit by bit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from course.judging import expect
from course.sandbox.exchange import plain_data
from course.sandbox.exchange.plain_data import Foreign

BELONGS_TO_THE_CALLER = (
    "What is handed over belongs to the caller, who may still need it: `+=`, `*=`, `out=`, `x[...] =`, `.sort()` and "
    "`.pop()` write into it. Make new arrays and lists, or work on a copy."
)
NEARLY_PUT_BACK = (
    "It was nearly put back: x + h - h is not x, because each of the two is rounded. Work on a copy, or keep the old "
    "value and write that back."
)


def first_change(
    before: Sequence[Any], after: Any, names: Sequence[str], may_change: Collection[int] = ()
) -> tuple[str, str] | None:
    """The first change, as "g at [2]: it was 1.5, and is 3 after the call", and its likely cause; None without any.

    Parameters
        before       the arguments
        after        the same after the call, as plain data
        names        their names
        may_change   positions, from 0, of arguments that are not compared
    """
    if not isinstance(after, tuple) or len(after) != len(before):
        return "what it was called with", ""
    for number, (old, new, name) in enumerate(zip(before, after, names, strict=True)):
        if number not in may_change:
            found = _change(plain_data.loads(plain_data.dumps(old)), new, name)
            if found:
                return found
    return None


def _change(old: Any, new: Any, name: str) -> tuple[str, str] | None:
    """The first change inside one argument, or one item of a list."""
    if isinstance(old, Foreign) and isinstance(new, Foreign):
        return None  # what is not plain data, such as a function, has no value that could be compared
    if type(old) is not type(new):
        return _sentence(name, old, new)
    if isinstance(old, np.ndarray):
        return _change_of_array(old, new, name)
    if isinstance(old, list | tuple):
        if len(old) != len(new):
            return f"{name}: it had {len(old)} items, and has {len(new)} after the call", BELONGS_TO_THE_CALLER
        found = (_change(a, b, f"{name}[{i}]") for i, (a, b) in enumerate(zip(old, new, strict=True)))
        return next((change for change in found if change), None)
    if isinstance(old, dict):
        if list(old) != list(new):
            return f"{name}: its keys were {list(old)}, and are {list(new)} after the call", BELONGS_TO_THE_CALLER
        found = (_change(old[key], new[key], f"{name}[{key!r}]") for key in old)
        return next((change for change in found if change), None)
    return None if bits(old) == bits(new) else _sentence(name, old, new)


def _change_of_array(old: np.ndarray, new: np.ndarray, name: str) -> tuple[str, str] | None:
    if old.shape != new.shape or old.dtype != new.dtype:
        of_old, of_new = f"shape {old.shape} and type {old.dtype}", f"shape {new.shape} and type {new.dtype}"
        return f"{name}: it had {of_old}, and has {of_new} after the call", BELONGS_TO_THE_CALLER
    if old.tobytes() == new.tobytes():
        return None
    differs = np.array([a != b for a, b in zip(items(old), items(new), strict=True)], bool).reshape(old.shape)
    first = tuple(int(i) for i in np.argwhere(differs)[0])
    sentence = _sentence(f"{name} at {list(first)}" if first else name, old[first].item(), new[first].item())
    is_number = old.dtype.kind in "fc" and bool(np.isfinite(new).all()) and bool(np.isfinite(old).all())
    if is_number and np.abs(old - new).max() <= 1e-9 * np.abs(old).max():
        return sentence[0], NEARLY_PUT_BACK
    return sentence


def _sentence(name: str, old: Any, new: Any) -> tuple[str, str]:
    was, became = expect.shown_apart(old, new)
    return f"{name}: it was {was}, and is {became} after the call", BELONGS_TO_THE_CALLER


def items(array: np.ndarray) -> list[bytes]:
    """The bytes of each element: NaN equals NaN, and -0.0 differs from 0.0."""
    data, size = array.tobytes(), array.dtype.itemsize
    return [data[i : i + size] for i in range(0, array.size * size, size)]


def bits(value: Any) -> Any:
    """A value that compares bit by bit: NaN equals NaN, and -0.0 differs from 0.0."""
    return value.hex() if isinstance(value, float) else repr(value) if isinstance(value, complex) else value
