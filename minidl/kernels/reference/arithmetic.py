"""exp, log, x ** y, x // y and x % y, in readable numpy (or CuPy)."""

from __future__ import annotations

import math
from typing import Any

from minidl.kernels import Array, array_module

__all__ = ["exp", "floor_divide", "log", "power", "remainder"]


def exp(x: Array) -> Array:
    return array_module(x).exp(x)


def log(x: Array) -> Array:
    return array_module(x).log(x)


def power(x: Array, y: Any) -> Array:
    """x ** y for a floating-point array x; y is a number, or a floating-point array that broadcasts.

    For x < 0 numpy calls the C library's function, at 45 ns per number. Here |x| is raised and the sign set: that of x
    for odd y; nan for x < 0 and a y that is not a whole number. Three small exponents are products.
    """
    if isinstance(y, (int, float)):
        if y in (1, 2, 0.5):
            return x**y  # numpy has fast paths for these
        if y in (3, -1, -2):
            return x * x * x if y == 3 else 1 / (x if y == -1 else x * x)
        if y == -0.5:
            return 1 / array_module(x).sqrt(x)
        y = array_module(x).asarray(y, dtype=x.dtype)
    module = array_module(x)
    magnitude = module.abs(x) ** y
    whole = module.floor(y) == y
    odd = whole & (module.floor(y / 2) != y / 2)
    signed = module.where(odd, module.copysign(magnitude, x), magnitude)
    return module.where(~whole & (x < 0) & (x > -math.inf), math.nan, signed)


def floor_divide(x: Array, y: Array) -> Array:
    """x / y, rounded down."""
    return x // y


def remainder(x: Array, y: Array) -> Array:
    """x - y * (x // y), with the sign of y."""
    return x % y
