"""The arrays that compiled kernels accept; the reference handles all others."""

from __future__ import annotations

import numpy as np

from minidl.kernels import Array

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def fits(x: Array, *others: Array) -> bool:
    """Return whether all are non-empty numpy arrays of one type, float32 or float64, and of one shape."""
    if type(x) is not np.ndarray or x.dtype not in (FLOAT32, FLOAT64) or not x.size:
        return False
    for other in others:
        if type(other) is not np.ndarray or other.dtype != x.dtype or other.shape != x.shape:
            return False
    return True


def eligible(first: Array, *others: Array) -> bool:
    """Return whether all are contiguous, non-empty numpy arrays of one type, float32 or float64."""
    if type(first) is not np.ndarray or first.dtype not in (FLOAT32, FLOAT64):  # by ==: pickle copies a dtype
        return False
    for array in (first, *others):
        if type(array) is not np.ndarray or array.dtype != first.dtype:
            return False
        if not array.flags.c_contiguous or not array.size:
            return False
    return True


def contiguous(*arrays: Array) -> list[Array] | None:
    """Return the arrays, copied if not contiguous; None if the compiled kernels do not support their type."""
    dtype = arrays[0].dtype
    if dtype not in (FLOAT32, FLOAT64):
        return None
    for array in arrays:
        if type(array) is not np.ndarray or array.dtype != dtype or not array.size:
            return None
    return [np.ascontiguousarray(array) for array in arrays]
