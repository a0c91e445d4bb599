"""Sums, means, extrema and products over any axes; sums that scatter rows. Each is one pass over memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.axes import Axis, passes, repeated
from minidl.kernels.jit.compiled import compiled
from minidl.kernels.jit.eligible import FLOAT64, fits
from minidl.kernels.jit.maxima import max_of_each_row, max_of_rows, share_in_columns, share_in_each_row
from minidl.kernels.jit.memory_order import along_axis
from minidl.kernels.jit.rows import copy
from minidl.kernels.jit.summation import sum_rows_each, sum_rows_together

__all__ = [
    "cumsum",
    "embedding_backward",
    "extremum_backward",
    "index_add",
    "max",
    "mean",
    "min",
    "prod",
    "sum",
    "sum_channels",
    "sum_rows",
]

LONG = 2048  # from this length on numpy's maximum of a row is faster
BITS: dict[str, tuple[Any, ...]] = {  # the integer of each type; then its inf, its largest number, its sign bit
    "f": (np.int32, np.array(np.inf, np.float32).view(np.int32)[()], np.int32(2**31 - 1), np.int32(31)),
    "d": (np.int64, np.array(np.inf, np.float64).view(np.int64)[()], np.int64(2**63 - 1), np.int64(63)),
}


def sum(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The sum over `axis`; the rounding error does not grow with the number of summands."""
    if not fits(x):
        return reference.sum(x, axis, keepdims)
    if axis is None and x.size > 1 and not keepdims and x.flags.c_contiguous:
        return _total(x, 1)
    if 0 in x.strides and (repeats := repeated(x, axis))[1] > 1:
        once, times = repeats
        return sum(once, axis, keepdims) * x.dtype.type(times)
    return _reduced(x, axis, keepdims, _sum, False)


def mean(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The mean over `axis`; the rounding error does not grow with the number of summands."""
    if not fits(x):
        return reference.mean(x, axis, keepdims)
    if axis is None and x.size > 1 and not keepdims and x.flags.c_contiguous:
        return _total(x, x.size)
    return _reduced(x, axis, keepdims, _sum, True)


def max(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The maximum over `axis`."""
    if not fits(x):
        return reference.max(x, axis, keepdims)
    return _reduced(x, axis, keepdims, _max, False)


def min(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The minimum over `axis`."""
    if not fits(x):
        return reference.min(x, axis, keepdims)
    return _reduced(x, axis, keepdims, _min, False)


def prod(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """The product over `axis`."""
    if not fits(x):
        return reference.prod(x, axis, keepdims)
    return _reduced(x, axis, keepdims, _prod, False)


def cumsum(x: Array, axis: int, backwards: bool = False) -> Array:
    """Running sums along `axis`, from its start, or from its end if `backwards`; they are kept in float64."""
    if not fits(x):
        return reference.cumsum(x, axis, backwards)
    out, (numbers, sums) = along_axis(axis, x)
    _running_sums(numbers, backwards, sums)
    return out


def extremum_backward(g: Array, x: Array, extremum: Array, axis: Axis) -> Array:
    """The gradient of x; ties share it. g and extremum (maxima or minima) keep the reduced axes with length 1."""
    if fits(x) and type(g) is type(extremum) is np.ndarray and g.dtype == extremum.dtype == x.dtype:
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
    if not fits(rows):
        return reference.sum_rows(rows)
    n, d = rows.shape
    if d == 1 or not rows.flags.c_contiguous:
        return sum(rows, 0)
    out = np.empty(d, rows.dtype)  # a fast path for the backward of linear layers: no planning of passes
    sum_rows_together(rows.reshape(1, n * d), d, 1.0, out.reshape(1, d))
    return out


def sum_channels(x: Array) -> Array:
    """x (n, c, h, w) -> (c,): the gradient of a convolution's bias."""
    return sum(x, (0, 2, 3)) if fits(x) else reference.sum_channels(x)


def embedding_backward(g: Array, indices: Array, n: int) -> Array:
    """Add every row of g (*indices.shape, d) to the row of an (n, d) array that its index names."""
    if not fits(g):
        return reference.embedding_backward(g, indices, n)
    return index_add(g.reshape(1, indices.size, g.shape[-1]), indices, n)[0]


def index_add(g: Array, indices: Array, n: int) -> Array:
    """Sums of the slices g[:, i] that go to one index: (outer, m, inner) -> (outer, n, inner).

    The sums are kept in float64 if an index occurs more than 64 times.
    """
    if not fits(g):
        return reference.index_add(g, indices, n)
    indices = indices.astype(np.int64, copy=False).reshape(-1)
    few = indices.size <= 64 or _largest_count(indices, n) <= 64
    out = np.zeros((g.shape[0], n, g.shape[2]), dtype=g.dtype if few else np.float64)
    _scatter(np.ascontiguousarray(g), indices, out)
    return out.astype(g.dtype, copy=False)


def _total(x: Array, divisor: int) -> Array:
    """The sum of all numbers, divided by `divisor`: a fast path without planning, since every loss ends with it."""
    out = np.empty((), x.dtype)
    sum_rows_each(x.reshape(1, x.size), float(divisor), out.reshape(1))
    return out


def _reduced(x: Array, axis: Axis, keepdims: bool, reduce: Callable[..., Array], divide: bool) -> Array:
    """Reduce x pass by pass, in memory order."""
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
    return _extreme(x, steps, smallest=False)


def _min(x: Array, steps: tuple[tuple[int, int, int], ...], divisor: int) -> Array:
    return _extreme(x, steps, smallest=True)


def _prod(x: Array, steps: tuple[tuple[int, int, int], ...], divisor: int) -> Array:
    if not steps:
        return x.copy()
    out = x
    for a, r, b in steps:
        source, out = out, np.empty((a, b), x.dtype)
        if b == 1:
            _product_of_each_row(source.reshape(a, r), out.reshape(a))
        else:
            _product_of_rows(source.reshape(a, r, b), out)
    return out


def _extreme(x: Array, steps: tuple[tuple[int, int, int], ...], smallest: bool) -> Array:
    if not steps:
        return x.copy()
    out = x
    for a, r, b in steps:
        source = out
        if b == 1 and r > LONG:
            rows = source.reshape(a, r)
            out = rows.min(axis=1) if smallest else rows.max(axis=1)
            continue
        out = np.empty((a, b), x.dtype)
        if b == 1:
            integer, *constants = BITS[x.dtype.char]
            max_of_each_row(source.reshape(a, r).view(integer), *constants, -smallest, out.reshape(a).view(integer))
        else:
            max_of_rows(source.reshape(a, r * b), b, -1 if smallest else 1, out)
    return out


@compiled()
def _largest_count(indices: Any, n: int) -> int:
    counts, largest = np.zeros(n, np.int64), 0
    for i in range(indices.size):
        counts[indices[i]] += 1
        if counts[indices[i]] > largest:
            largest = counts[indices[i]]
    return largest


@compiled()
def _scatter(g: Any, indices: Any, out: Any) -> None:
    """g (outer, m, inner) -> out (outer, n, inner), which is 0 at first."""
    for o in range(g.shape[0]):
        block, sums = g[o], out[o]
        if g.shape[2] == 1:
            for i in range(indices.size):
                sums[indices[i], 0] += block[i, 0]
        else:
            for i in range(indices.size):
                row, source = sums[indices[i]], block[i]
                for j in range(source.size):
                    row[j] += source[j]


# Every running sum or product depends on the one before, so that several rows are processed together.


@compiled()
def _running_sums(x: Any, backwards: bool, out: Any) -> None:
    """x (outer, n, inner) -> out, of the same shape: the sums along n up to each number, kept in float64."""
    outer, n, inner = x.shape
    first, step = (n - 1, -1) if backwards else (0, 1)
    if inner == 1:
        for o in range(outer):
            total = 0.0
            for k in range(n):
                total += x[o, first + step * k, 0]
                out[o, first + step * k, 0] = total
        return
    totals = np.empty(inner, np.float64)
    for o in range(outer):
        totals[:] = 0.0
        for k in range(n):
            row, into = x[o, first + step * k], out[o, first + step * k]
            for j in range(inner):
                totals[j] += row[j]
                into[j] = totals[j]


@compiled()
def _product_of_each_row(x: Any, out: Any) -> None:
    """x (a, r) -> out (a,). Four rows at a time; the numbers of a row in their order."""
    rows, length = x.shape
    whole = rows - rows % 4
    one = x.dtype.type(1)
    for i in range(0, whole, 4):
        p, q, r, s = one, one, one, one
        for j in range(length):
            p *= x[i, j]
            q *= x[i + 1, j]
            r *= x[i + 2, j]
            s *= x[i + 3, j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = p, q, r, s
    for i in range(whole, rows):
        p = one
        for j in range(length):
            p *= x[i, j]
        out[i] = p


@compiled()
def _product_of_rows(x: Any, out: Any) -> None:
    """x (a, r, b) -> out (a, b)."""
    matrices, rows, length = x.shape
    for i in range(matrices):
        into = out[i]
        copy(x[i, 0], into)
        for k in range(1, rows):
            row = x[i, k]
            for j in range(length):
                into[j] *= row[j]
