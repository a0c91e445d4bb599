"""exp, log, x ** y, x // y and x % y, also of arrays with gaps in memory.

numpy's log and power are made of vector instructions, for numbers side by side; power for x >= 0. For x // y and x % y
numpy calls the C library for each number, which takes 16 ns.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit import elementary
from minidl.kernels.jit.compiled import CONTRACT, compiled
from minidl.kernels.jit.eligible import FLOAT32, fits
from minidl.kernels.jit.function_attributes import wide_vectors
from minidl.kernels.jit.memory_order import arranged, dense, elementwise, mapped, mapped_pairs

__all__ = ["exp", "floor_divide", "log", "power", "remainder"]


@elementwise(CONTRACT)
def exp(x: Any, out: Any) -> None:
    """e to the power x."""
    wide_vectors()
    for i in range(x.size):
        out[i] = elementary.exp(x[i])


def log(x: Array) -> Array:
    """The natural logarithm."""
    return np.log(dense(x)) if fits(x) else reference.log(x)


def power(x: Array, y: Any) -> Array:
    """x ** y, for a number or an array y."""
    if not fits(x):
        return reference.power(x, y)
    if isinstance(y, (int, float)):
        if y in _PRODUCTS:
            return mapped(_PRODUCTS[y], x)
        if y in (1, 2, 0.5, -0.5):
            return reference.power(x, y)
        exponents = np.asarray(y, dtype=x.dtype)
    elif type(y) is np.ndarray and y.dtype == x.dtype:
        exponents = y
    else:
        return reference.power(x, y)
    out = np.asarray(np.abs(dense(x)) ** dense(exponents))
    if out.size and (x.ndim or np.signbit(x)):
        _put_signs(
            arranged(x, out), arranged(exponents, out) if exponents.ndim else exponents.reshape(1), out.ravel("K")
        )
    return out


@compiled()
def _put_signs(x: Any, y: Any, out: Any) -> None:
    """Turn |x| ** y in `out` into x ** y; y has one number, or as many as x."""
    wide_vectors()
    infinity, nan, half = x.dtype.type(math.inf), x.dtype.type(math.nan), x.dtype.type(0.5)
    many = y.size > 1
    for i in range(x.size):
        exponent = y[i] if many else y[0]
        whole = np.floor(exponent) == exponent
        odd = whole & (np.floor(exponent * half) != exponent * half)
        signed = math.copysign(out[i], x[i]) if odd else out[i]
        out[i] = nan if (not whole) & (x[i] < 0) & (x[i] > -infinity) else signed


@compiled()
def _cubes(x: Any, out: Any) -> None:
    wide_vectors()
    for i in range(x.size):
        out[i] = x[i] * x[i] * x[i]


@compiled()
def _inverses(x: Any, out: Any) -> None:
    wide_vectors()
    one = x.dtype.type(1)
    for i in range(x.size):
        out[i] = one / x[i]


@compiled()
def _inverse_squares(x: Any, out: Any) -> None:
    wide_vectors()
    one = x.dtype.type(1)
    for i in range(x.size):
        out[i] = one / (x[i] * x[i])


_PRODUCTS: dict[float, Any] = {3: _cubes, -1: _inverses, -2: _inverse_squares}


# ---- x // y and x % y ----

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
