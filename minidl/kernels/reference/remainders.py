"""x // y and x % y, in readable numpy (or CuPy)."""

from __future__ import annotations

from minidl.kernels import Array

__all__ = ["floor_divide", "remainder"]


def floor_divide(x: Array, y: Array) -> Array:
    """x / y, rounded down."""
    return x // y


def remainder(x: Array, y: Array) -> Array:
    """x - y * (x // y), with the sign of y."""
    return x % y
