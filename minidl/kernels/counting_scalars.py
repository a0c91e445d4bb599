"""multiplications: how often a kernel multiplies two of its numbers, counted by running it on numbers that count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class CountingScalar:
    """A number that counts its products with other such numbers; constants, such as a half, do not count."""

    __slots__ = ("log", "value")

    def __init__(self, value: float, log: list[int]) -> None:
        self.value, self.log = value, log

    def __add__(self, other: Any) -> CountingScalar:
        return CountingScalar(self.value + _value(other), self.log)

    __radd__ = __add__

    def __sub__(self, other: Any) -> CountingScalar:
        return CountingScalar(self.value - _value(other), self.log)

    def __neg__(self) -> CountingScalar:
        return CountingScalar(-self.value, self.log)

    def __truediv__(self, constant: float) -> CountingScalar:
        return CountingScalar(self.value / constant, self.log)

    def __mul__(self, other: Any) -> CountingScalar:
        self.log[0] += isinstance(other, CountingScalar)
        return CountingScalar(self.value * _value(other), self.log)

    __rmul__ = __mul__


def multiplications(kernel: Callable[..., Any], *arguments: Any) -> tuple[int, np.ndarray]:
    """Call the kernel, and count its products of two numbers that both come from its array arguments.

    Products with constants, such as the halves of Winograd's transforms or the zeros of padding, do not count. Only
    what is written in Python and numpy's arithmetic can be counted: no compiled kernel, no `np.fft`.

    Returns the count, and the kernel's result.

    >>> from minidl.kernels import reference
    >>> tile, weight = np.ones((1, 1, 4, 4)), np.ones((1, 1, 3, 3))
    >>> for algorithm in ("naive", "winograd"):
    ...     count, out = multiplications(reference.conv2d, tile, weight, None, (1, 1), (0, 0), (1, 1), 1, algorithm)
    ...     print(count, out.tolist())
    36 [[[[9.0, 9.0], [9.0, 9.0]]]]
    16 [[[[9.0, 9.0], [9.0, 9.0]]]]
    """
    log = [0]
    counting = np.vectorize(lambda value: CountingScalar(value, log), otypes=[object])
    operands = [counting(each) if isinstance(each, np.ndarray) else each for each in arguments]
    try:
        out = kernel(*operands)
    except TypeError as error:
        raise TypeError(
            "multiplications: the kernel calls a compiled function, which computes with numbers of the processor only: "
            "give one of kernels.reference, and no 'fft'"
        ) from error
    return log[0], np.vectorize(_value, otypes=[float])(out)


def _value(number: Any) -> Any:
    return number.value if isinstance(number, CountingScalar) else number
