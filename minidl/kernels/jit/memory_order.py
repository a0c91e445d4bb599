"""Compiled elementwise loops run in memory order, regardless of the order of the axes.

A transposed matrix is read as fast as the matrix itself, and the result has its layout, as with numpy and PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from minidl.kernels import Array
from minidl.kernels.jit.eligible import FLOAT32, FLOAT64

Loop = Callable[..., Any]


def fits(x: Array, *others: Array) -> bool:
    """Return whether all are non-empty numpy arrays of one type, float32 or float64, and of one shape."""
    if type(x) is not np.ndarray or x.dtype not in (FLOAT32, FLOAT64) or not x.size:
        return False
    for other in others:
        if type(other) is not np.ndarray or other.dtype != x.dtype or other.shape != x.shape:
            return False
    return True


def mapped(loop: Loop, x: Array) -> Array:
    """Call loop(line of x, line of the result), where a line is the array's numbers in memory order."""
    if x.flags.c_contiguous:
        out = np.empty(x.shape, x.dtype)  # half the time of empty_like
        loop(x.ravel(), out.ravel())
    else:
        out = np.empty_like(x)
        loop(x.ravel("K"), out.ravel("K"))
    return out


def mapped_pairs(loop: Loop, g: Array, x: Array) -> Array:
    """Call loop(line of g, line of x, line of the result); the result has the layout of x."""
    if x.flags.c_contiguous and g.flags.c_contiguous:
        out = np.empty(x.shape, x.dtype)
        loop(g.ravel(), x.ravel(), out.ravel())
        return out
    out = np.empty_like(x)
    if g.strides == x.strides:
        loop(g.ravel("K"), x.ravel("K"), out.ravel("K"))
    else:
        arranged = np.empty_like(x)
        arranged[...] = g
        loop(arranged.ravel("K"), x.ravel("K"), out.ravel("K"))
    return out


def along_axis(axis: int, x: Array, *others: Array) -> tuple[Array, list[Array]]:
    """An empty result with the layout of x; and x, the others and the result as contiguous arrays (outer, n, inner).

    n is the length of `axis`; the axes around it are ordered and joined as they lie in the memory of x.
    """
    out = np.empty_like(x)
    if x.flags.c_contiguous and axis in (-1, x.ndim - 1):  # the most frequent case
        return out, [np.ascontiguousarray(array).reshape(-1, x.shape[-1], 1) for array in (x, *others, out)]
    order = list(range(x.ndim))
    if not out.flags.c_contiguous:
        order.sort(key=lambda i: -out.strides[i])
    position, shape = order.index(axis % x.ndim), [x.shape[i] for i in order]
    shape = [prod(shape[:position]), shape[position], prod(shape[position + 1 :])]
    return out, [np.ascontiguousarray(array.transpose(order)).reshape(shape) for array in (x, *others, out)]


def dense(x: Array) -> Array:
    """Return x, or a copy without gaps in the same order."""
    return x if x.flags.forc else x.copy(order="K")
