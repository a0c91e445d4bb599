"""Sums, means, maxima and minima over any axes; sums that scatter rows. Each is one pass over memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.axes import Axis, passes, repeated
from minidl.kernels.jit.compiled import compiled
from minidl.kernels.jit.eligible import FLOAT32, FLOAT64, eligible
from minidl.kernels.jit.maxima import max_of_each_row, max_of_rows, share_in_columns, share_in_each_row
from minidl.kernels.jit.summation import sum_rows_each, sum_rows_together

__all__ = ["embedding_backward", "extremum_backward", "max", "mean", "min", "sum", "sum_channels", "sum_rows"]

LONG = 2048  # from here on numpy's maximum of a row is the faster one
BITS: dict[str, tuple[Any, ...]] = {  # the integer of each type; then its inf, its largest number, its sign bit
    "f": (np.int32, np.array(np.inf, np.float32).view(np.int32)[()], np.int32(2**31 - 1), np.int32(31)),
    "d": (np.int64, np.array(np.inf, np.float64).view(np.int64)[()], np.int64(2**63 - 1), np.int64(63)),
}


def sum(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The sum over `axis`; the rounding error does not grow with the number of summands."""
    if not _compilable(x):
        return reference.sum(x, axis, keepdims)
    if 0 in x.strides and (repeats := repeated(x, axis))[1] > 1:
        once, times = repeats
        return sum(once, axis, keepdims) * x.dtype.type(times)
    return _reduced(x, axis, keepdims, _sum, False)


def mean(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The mean over `axis`; the rounding error does not grow with the number of summands."""
    if not _compilable(x):
        return reference.mean(x, axis, keepdims)
    return _reduced(x, axis, keepdims, _sum, True)


def max(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The maximum over `axis`."""
    if not _compilable(x):
        return reference.max(x, axis, keepdims)
    return _reduced(x, axis, keepdims, _max, False)


def min(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The minimum over `axis`."""
    return -max(-x, axis, keepdims) if _compilable(x) else reference.min(x, axis, keepdims)


def extremum_backward(g: Array, x: Array, extremum: Array, axis: Axis) -> Array:
    """The gradient of x; g and extremum, the maxima or minima, have the reduced axes with length 1. Ties share it."""
    if _compilable(x) and type(g) is type(extremum) is np.ndarray and g.dtype == extremum.dtype == x.dtype:
        memory, plan = passes(x, axis)
        if len(plan.steps) == 1:
            a, r, b = plan.steps[0]
            if plan.order is not None:
                g, extremum = g.transpose(plan.order), extremum.transpose(plan.order)
            g, extremum = np.ascontiguousarray(g).reshape(a, b), np.ascontiguousarray(extremum).reshape(a, b)
            gradient = np.empty_like(memory)
            if b == 1:
                share_in_each_row(g.reshape(a), memory.reshape(a, r), extremum.reshape(a), gradient.reshape(a, r))
            else:
                share_in_columns(g, memory.reshape(a, r, b), extremum, gradient.reshape(a, r, b))
            return gradient if plan.order is None else gradient.transpose(plan.back)
    return reference.extremum_backward(g, x, extremum, axis)


def sum_rows(rows: Array) -> Array:
    """(n, d) -> (d,): the gradient of a bias."""
    return sum(rows, 0) if _compilable(rows) else reference.sum_rows(rows)


def sum_channels(x: Array) -> Array:
    """x (n, c, h, w) -> (c,): the gradient of a convolution's bias."""
    return sum(x, (0, 2, 3)) if _compilable(x) else reference.sum_channels(x)


def embedding_backward(g: Array, indices: Array, n: int) -> Array:
    """Add every row of g (*indices.shape, d) to the row of an (n, d) array that its index names.

    The sums are kept in float64 if an index occurs more than 64 times.
    """
    if not eligible(g):
        return reference.embedding_backward(g, indices, n)
    indices = indices.astype(np.int64, copy=False).reshape(-1)
    few = indices.size <= 64 or _largest_count(indices, n) <= 64
    gradient = np.zeros((n, g.shape[-1]), dtype=g.dtype if few else np.float64)
    _scatter_rows(g.reshape(-1, g.shape[-1]), indices, gradient)
    return gradient.astype(g.dtype, copy=False)


def _compilable(x: Array) -> bool:
    return type(x) is np.ndarray and x.dtype in (FLOAT32, FLOAT64) and x.size > 0


def _reduced(x: Array, axis: Axis, keepdims: bool, reduce: Callable[..., Array], divide: bool) -> Array:
    """Reduce x pass by pass, in the order in which it lies in memory."""
    memory, plan = passes(x, axis)
    out = reduce(memory, plan.steps, plan.times if divide else 1)
    if plan.order is None:
        return out.reshape(plan.kept if keepdims else plan.shape)
    out = out.reshape(plan.kept).transpose(plan.back)
    return out if keepdims else out.squeeze(plan.axes)


def _sum(x: Array, steps: tuple[tuple[int, int, int], ...], divisor: int) -> Array:
    if not steps:
        return x.copy()
    out, last = x, steps[-1]
    for step in steps:
        (a, r, b), source = step, out
        dtype = x.dtype if step is last else FLOAT64
        by = float(divisor) if step is last else 1.0
        if b == 1:
            out = np.empty(a, dtype)
            sum_rows_each(source.reshape(a, r), by, out)
        else:
            out = np.empty((a, b), dtype)
            sum_rows_together(source.reshape(a, r * b), b, by, out)
    return out


def _max(x: Array, steps: tuple[tuple[int, int, int], ...], divisor: int) -> Array:
    if not steps:
        return x.copy()
    out = x
    for a, r, b in steps:
        source = out
        if b == 1 and r > LONG:
            out = source.reshape(a, r).max(axis=1)
            continue
        out = np.empty((a, b), x.dtype)
        if b == 1:
            integer, *constants = BITS[x.dtype.char]
            max_of_each_row(source.reshape(a, r).view(integer), *constants, out.reshape(a).view(integer))
        else:
            max_of_rows(source.reshape(a, r * b), b, out)
    return out


@compiled()
def _largest_count(indices: Any, n: int) -> int:
    counts = np.zeros(n, np.int64)
    for i in range(indices.size):
        counts[indices[i]] += 1
    return counts.max()


@compiled()
def _scatter_rows(g: Any, indices: Any, gradient: Any) -> None:
    for i in range(indices.size):
        row, source = gradient[indices[i]], g[i]
        for j in range(source.size):
            row[j] += source[j]
