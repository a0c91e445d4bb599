"""x // y and x % y of float32, vectorized; numpy calls the C library for each number, which takes 16 ns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import compiled
from minidl.kernels.jit.eligible import FLOAT32
from minidl.kernels.jit.function_attributes import wide_vectors
from minidl.kernels.jit.memory_order import fits, mapped_pairs

__all__ = ["floor_divide", "remainder"]

# In float64 the quotient of two float32 is correct after rounding down as long as it is below 2**28: it is a whole
# number, or at least 2**-24 away from one, which the 53 bits tell apart. The product of y and that quotient is exact,
# and so is the remainder. Larger quotients, infinities, nan and division by 0 go to numpy.
EXACT = 2.0**28


def floor_divide(x: Array, y: Array) -> Array:
    """x / y, rounded down."""
    out = _mapped(_quotients, x, y)
    return reference.floor_divide(x, y) if out is None else out


def remainder(x: Array, y: Array) -> Array:
    """x - y * (x // y), with the sign of y."""
    out = _mapped(_remainders, x, y)
    return reference.remainder(x, y) if out is None else out


def _mapped(loop: Any, x: Array, y: Array) -> Array | None:
    if not fits(x) or x.dtype != FLOAT32 or type(y) is not np.ndarray or y.dtype != FLOAT32:
        return None
    if y.shape != x.shape:
        if y.ndim > x.ndim or np.broadcast_shapes(x.shape, y.shape) != x.shape:
            return None
        y = np.broadcast_to(y, x.shape)
    exact = np.zeros(1, np.bool_)
    out = mapped_pairs(lambda y, x, out: loop(x, y, out, exact), y, x)
    return out if exact[0] else None


@compiled()
def _quotients(x: Any, y: Any, out: Any, exact: Any) -> None:
    wide_vectors()
    largest = 0
    for i in range(x.size):
        quotient = np.float64(x[i]) / np.float64(y[i])
        largest |= not (abs(quotient) < EXACT)
        out[i] = math.floor(quotient)
    exact[0] = largest == 0


@compiled()
def _remainders(x: Any, y: Any, out: Any, exact: Any) -> None:
    wide_vectors()
    largest = 0
    for i in range(x.size):
        a, b = np.float64(x[i]), np.float64(y[i])
        quotient = a / b
        largest |= not (abs(quotient) < EXACT)
        out[i] = math.copysign(a - b * np.floor(quotient), b)
    exact[0] = largest == 0
