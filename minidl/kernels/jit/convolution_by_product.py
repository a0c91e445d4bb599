"""Convolution by unfolding: every window becomes a column of a matrix, and BLAS multiplies it by the filters.

The images are laid out as for sliding (layout.py), so that a tap of the filter reads adjacent numbers for a row of the
result. A few rows of the result are computed at a time: their columns stay in the second-level cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minidl.kernels import Array
from minidl.kernels.jit.compiled import compiled, inner
from minidl.kernels.jit.convolution_by_sliding import lay_out
from minidl.kernels.jit.layout import Layout, layout_forward
from minidl.kernels.jit.rows import copy_row

Pair = tuple[int, int]
Shape = tuple[int, ...]

BLOCK = 1 << 18  # numbers of a block of columns: 1 MiB of float32
FEWEST = 256
"""Columns of a block at least, since each block reads all filters. Measured on one core with AVX2, 4 images of 7x7,
512 -> 512 channels, window 5x5: 51 to 58 GFLOP/s instead of the 17 to 27 that 20 columns of 12,800 numbers gave."""


def conv2d(
    x: Array, weight: Array, bias: Array | None, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """x (n, c, h, w), weight (f, c / groups, kh, kw), bias (f,) -> (n, f, oh, ow)."""
    matrices = weight.reshape(groups, len(weight) // groups, -1)
    shift = np.zeros(len(weight), dtype=x.dtype) if bias is None else bias
    layout = layout_forward((len(x), *weight.shape[1:2], *x.shape[2:]), weight.shape[2:], stride, padding, dilation)
    out = np.empty((len(x), len(weight), *layout.size), dtype=x.dtype)
    for group, row, columns in _columns(x, groups, layout):
        _spread(matrices[group] @ columns, out, group, row, shift)
    return out


def conv2d_backward_input(
    g: Array, weight: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """g (n, f, oh, ow) -> the gradient with respect to x, of the given shape.

    With stride 1 it is a convolution of g by the mirrored filters, since unfolding is faster than folding. Exceptions
    are few channels, which give products with few rows, and so many filters that mirroring takes longer.
    """
    own, (channels, kh, kw) = weight.shape[0] // groups, weight.shape[1:]
    around = dilation[0] * (kh - 1) - padding[0], dilation[1] * (kw - 1) - padding[1]
    mirroring = stride == (1, 1) and min(around) >= 0 and 2 * channels >= own and _worth_a_copy(g, own)
    if mirroring and np.isfinite(weight.sum()):  # the zeros around g would give 0 * inf = nan
        parts = weight.reshape(groups, own, channels, kh, kw)[..., ::-1, ::-1]
        mirrored = np.ascontiguousarray(parts.swapaxes(1, 2)).reshape(groups * channels, own, kh, kw)
        return conv2d(g, mirrored, None, stride, around, dilation, groups)
    matrices = weight.reshape(groups, len(weight) // groups, -1)
    gradient = np.zeros(shape, dtype=g.dtype)
    rows = _rows_of_block(matrices.shape[2], g.shape[3])
    for row in range(0, g.shape[0] * g.shape[2], rows):
        count = min(rows, g.shape[0] * g.shape[2] - row)
        for group in range(groups):
            columns = matrices[group].T @ _gathered(g, group, matrices.shape[1], row, count)
            _fold(columns, row, count, group, weight.shape[2:], stride, padding, dilation, g.shape[2:], gradient)
    return gradient


def conv2d_backward_weight(
    g: Array, x: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """g (n, f, oh, ow), x (n, c, h, w) -> the gradient with respect to the weight, of the given shape."""
    filters, taps = shape[0] // groups, shape[1] * shape[2] * shape[3]
    transposed = _worth_a_copy(g, filters)
    gradient = np.zeros((groups, taps, filters) if transposed else (groups, filters, taps), dtype=x.dtype)
    layout = layout_forward((len(x), *shape[1:2], *x.shape[2:]), shape[2:], stride, padding, dilation)
    for group, row, columns in _columns(x, groups, layout):
        part = _gathered(g, group, filters, row, columns.shape[1] // g.shape[3])
        gradient[group] += columns @ part.T if transposed else part @ columns.T  # BLAS is faster with the first
    return np.ascontiguousarray(gradient.swapaxes(1, 2) if transposed else gradient).reshape(shape)


def _worth_a_copy(g: Array, filters: int) -> bool:
    """Return whether the products with g (n, f, oh, ow) are so expensive that a copy of the filters is worth it."""
    return g.shape[0] * g.shape[2] * g.shape[3] >= 8 * filters


def _rows_of_block(taps: int, width: int) -> int:
    """Return how many rows of the result, of this width, are computed at a time."""
    return max(1, max(BLOCK // taps, FEWEST) // width)


def _columns(x: Array, groups: int, layout: Layout) -> Iterator[tuple[int, int, Array]]:
    """Yield for each block: the group of channels, the first row of the result, and columns (taps, positions).

    Rows are numbered across images: row y of image i has number i oh + y.
    """
    images, lead, stride, apart, pitch, _ = layout.numbers
    (oh, ow), shifts = layout.size, layout.shifts[: layout.taps]
    laid_out = np.zeros((layout.planes, layout.plane_size), dtype=x.dtype)
    blocks = -(-images * oh // _rows_of_block(layout.taps, ow))
    rows = -(-images * oh // blocks)
    memory = np.empty(layout.taps * rows * ow + 8, dtype=x.dtype)
    for begin in range(0, len(x), images):
        end = min(begin + images, len(x))
        for group in range(groups):
            _lay_out(x[begin:end], group, x.shape[1] // groups, laid_out, lead, stride, apart, pitch)
            for row in range(0, (end - begin) * oh, rows):
                count = min(rows, (end - begin) * oh - row)
                _unfold(laid_out, shifts, apart, pitch, row, count, oh, ow, memory)
                columns = memory[: layout.taps * count * ow].reshape(layout.taps, count * ow)
                yield group, begin * oh + row, columns


@compiled()
def _lay_out(x: Any, group: int, channels: int, rows: Any, lead: Any, stride: Any, apart: int, pitch: int) -> None:
    lay_out(x, group * channels, channels, rows, lead, stride, apart, pitch)


@compiled()
def _unfold(
    laid_out: Any, shifts: Any, apart: int, pitch: int, row: int, count: int, oh: int, ow: int, columns: Any
) -> None:
    """columns[t, r, j] = laid_out[shifts[t] + place of row + r + j], 8 numbers at a time.

    The last eight of a row may reach into the next row of the columns, which is written after it.
    """
    flat = laid_out.reshape(-1)
    target = 0
    for t in range(shifts.size):
        for r in range(row, row + count):
            source = shifts[t] + r // oh * apart + r % oh * pitch
            for j in range(0, ow, 8):
                _copy_8(flat, source + j, columns, target + j)
            target += ow


@inner()
def _copy_8(a: Any, source: int, b: Any, target: int) -> None:
    """b[target + k] = a[source + k]: eight loads, then eight stores, which LLVM merges into one of each."""
    s, t = np.uint64(source), np.uint64(target)
    c, d, e, f = a[s], a[s + np.uint64(1)], a[s + np.uint64(2)], a[s + np.uint64(3)]
    g, h, i, j = a[s + np.uint64(4)], a[s + np.uint64(5)], a[s + np.uint64(6)], a[s + np.uint64(7)]
    b[t], b[t + np.uint64(1)], b[t + np.uint64(2)], b[t + np.uint64(3)] = c, d, e, f
    b[t + np.uint64(4)], b[t + np.uint64(5)], b[t + np.uint64(6)], b[t + np.uint64(7)] = g, h, i, j


def _gathered(g: Array, group: int, filters: int, row: int, count: int) -> Array:
    """Return `count` rows of the group's channels of g (n, f, oh, ow) as (f / groups, count ow)."""
    rows = np.empty((filters, count * g.shape[3]), dtype=g.dtype)
    _gather(g, group, row, rows)
    return rows


@compiled()
def _gather(g: Any, group: int, row: int, rows: Any) -> None:
    filters, oh, ow = rows.shape[0], g.shape[2], g.shape[3]
    flat, target = g.reshape(-1), rows.reshape(-1)
    for f in range(filters):
        for r in range(rows.shape[1] // ow):
            i, y = (row + r) // oh, (row + r) % oh
            source = ((i * g.shape[1] + group * filters + f) * oh + y) * ow
            copy_row(flat, source, target, f * rows.shape[1] + r * ow, ow, g.dtype.type(0))


@compiled()
def _spread(products: Any, out: Any, group: int, row: int, bias: Any) -> None:
    """Write the products (f / groups, rows ow), plus the bias into out (n, f, oh, ow), starting at the given row."""
    filters, oh, ow = products.shape[0], out.shape[2], out.shape[3]
    flat, target = products.reshape(-1), out.reshape(-1)
    for k in range(filters):
        f = group * filters + k
        for r in range(products.shape[1] // ow):
            i, y = (row + r) // oh, (row + r) % oh
            place = ((i * out.shape[1] + f) * oh + y) * ow
            copy_row(flat, k * products.shape[1] + r * ow, target, place, ow, bias[f])


@compiled()
def _fold(
    columns: Any, first_row: int, count: int, group: int, window: Any, stride: Any, padding: Any, dilation: Any,
    size: Any, gradient: Any,
) -> None:  # fmt: skip
    """Add every element of the columns to the pixel that it multiplies."""
    _, all_channels, h, w = gradient.shape
    channels = columns.shape[0] // (window[0] * window[1])
    flat, target = columns.reshape(-1), gradient.reshape(-1)
    place = 0
    for c in range(channels):
        for k in range(window[0]):
            for l in range(window[1]):  # noqa: E741
                first, last = _inside(w, l * dilation[1] - padding[1], stride[1], size[1])
                for r in range(first_row, first_row + count):
                    plane = (r // size[0] * all_channels + group * channels + c) * h
                    row = r % size[0] * stride[0] + k * dilation[0] - padding[0]
                    if row >= 0 and row < h:
                        pixel = (plane + row) * w + l * dilation[1] - padding[1] + first * stride[1]
                        _add(flat, place + first, target, pixel, stride[1], last - first)
                    place += size[1]


@inner()
def _inside(width: int, offset: int, stride: int, count: int) -> Any:
    """Return (first, last): stride i + offset is a pixel for the windows i = first, ..., last - 1 of `count`."""
    first = min(count, max(0, -(offset // stride)))
    return first, max(first, min(count, (width - 1 - offset) // stride + 1))


@inner()
def _add(a: Any, source: int, b: Any, target: int, stride: int, count: int) -> None:
    """b[target + stride k] += a[source + k]"""
    s, t = np.uint64(source), np.uint64(target)
    if stride == 1:
        for k in range(count):
            b[t + np.uint64(k)] += a[s + np.uint64(k)]
    else:
        for k in range(count):
            b[t + np.uint64(stride * k)] += a[s + np.uint64(k)]
