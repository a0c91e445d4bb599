"""Sizes in two directions: the kernel size, stride, padding and dilation of convolution and pooling."""

from __future__ import annotations

import operator
from typing import Any

from minidl.arguments import whole_number

Pair = int | tuple[int, int]
Single = int | tuple[int]


def pair(value: Pair) -> tuple[int, int]:
    """(vertical, horizontal) from two whole numbers, or from one for both. Errors: TypeError for anything else."""
    try:
        vertical, horizontal = value if isinstance(value, (tuple, list)) else (value, value)
        return operator.index(vertical), operator.index(horizontal)
    except (TypeError, ValueError):
        raise _no_pair(value) from None


def single(value: Single) -> tuple[int]:
    """A size along a sequence, from a whole number alone or in a tuple, as in PyTorch."""
    number = value[0] if isinstance(value, (tuple, list)) and len(value) == 1 else value
    return (whole_number("a size, stride, padding or dilation of a sequence", number),)


def hashable(value: Any) -> Any:
    """A list or an array as a tuple, other values as they are: a key for a cache. Errors: TypeError as for `pair`."""
    if type(value) is int or value is None:
        return value
    key = value.tolist() if hasattr(value, "tolist") else value
    key = tuple(key) if type(key) is list else key
    try:
        hash(key)
    except TypeError:
        raise _no_pair(value) from None
    return key


def _no_pair(value: Any) -> TypeError:
    return TypeError(
        f"sizes, strides, paddings and dilations are a whole number or two, (vertical, horizontal), not {value!r}"
    )
