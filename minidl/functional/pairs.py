"""Sizes in two directions: the kernel size, stride, padding and dilation of convolution and pooling."""

from __future__ import annotations

import operator
from typing import Any

Pair = int | tuple[int, int]


def pair(value: Pair) -> tuple[int, int]:
    """(vertical, horizontal) from two whole numbers, or from one for both. Errors: TypeError for anything else."""
    try:
        vertical, horizontal = value if isinstance(value, (tuple, list)) else (value, value)
        return operator.index(vertical), operator.index(horizontal)
    except (TypeError, ValueError):
        raise TypeError(
            f"sizes, strides, paddings and dilations are a whole number or two, (vertical, horizontal), not {value!r}"
        ) from None


def hashable(value: Any) -> Any:
    """A list as a tuple, other values as they are: a key for a cache."""
    return tuple(value) if type(value) is list else value
