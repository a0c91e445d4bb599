"""exp, log and x ** y, also of arrays with gaps in memory and of negative numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit import elementary
from minidl.kernels.jit.compiled import CONTRACT, compiled
from minidl.kernels.jit.function_attributes import wide_vectors
from minidl.kernels.jit.memory_order import arranged, dense, fits, mapped

__all__ = ["exp", "log", "power"]

# numpy's log and power are made of vector instructions, for numbers side by side; power for x >= 0.


def exp(x: Array) -> Array:
    """e to the power x."""
    return mapped(_powers_of_e, x) if fits(x) else reference.exp(x)


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


@compiled(CONTRACT)
def _powers_of_e(x: Any, out: Any) -> None:
    wide_vectors()
    for i in range(x.size):
        out[i] = elementary.exp(x[i])


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
