"""Pooling over windows of an image: every window is read once, every row of the result is written once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import REASSOCIATE, compiled, inner
from minidl.kernels.jit.eligible import contiguous
from minidl.kernels.jit.function_attributes import never_inlined
from minidl.kernels.jit.rows import copy
from minidl.kernels.jit.summation import BLOCK, sum_of
from minidl.kernels.parallel_for import parallel_for
from minidl.kernels.reference.windows import Windows

__all__ = ["avg_pool2d", "avg_pool2d_backward", "max_pool2d", "max_pool2d_backward"]

Shape = tuple[int, ...]

MANY_COLUMNS = 6  # columns of a window from which on `_largest_of_many` is used

WORTH_A_THREAD = 1 << 18  # numbers; pooling them with windows of 2x2 takes 200 to 400 us


def max_pool2d(x: Array, rows: Windows, columns: Windows) -> tuple[Array, Array]:
    """x (n, c, h, w) -> the maxima (n, c, oh, ow), and the pixel w y + x of each, int32."""
    arrays = contiguous(x)
    if arrays is None:
        return reference.max_pool2d(x, rows, columns)
    (x,) = arrays
    out = np.empty((*x.shape[:2], rows.number, columns.number), dtype=x.dtype)
    position = np.empty(out.shape, dtype=np.int32)
    edges = rows.start, rows.stop, rows.step, columns.start, columns.stop, columns.step
    _over_images(x.size, _max_pool, (x, out, position), *edges)
    return out, position


def max_pool2d_backward(g: Array, position: Array, shape: Shape) -> Array:
    """Add every element of g to the pixel that was the maximum of its window."""
    arrays = contiguous(g)
    if arrays is None:
        return reference.max_pool2d_backward(g, position, shape)
    gradient = np.zeros(shape, dtype=g.dtype)
    _over_images(gradient.size, _max_pool_backward, (*arrays, np.ascontiguousarray(position), gradient))
    return gradient


def avg_pool2d(x: Array, rows: Windows, columns: Windows) -> Array:
    """x (n, c, h, w) -> the means (n, c, oh, ow)."""
    arrays = contiguous(x)
    if arrays is None:
        return reference.avg_pool2d(x, rows, columns)
    (x,) = arrays
    n, c, h, w = x.shape
    out = np.empty((n, c, rows.number, columns.number), dtype=x.dtype)
    if rows.tile * rows.number != h or columns.tile * columns.number != w:
        edges = rows.start, rows.stop, rows.divisor, columns.start, columns.stop, columns.divisor
        _over_images(x.size, _avg_pool, (x, out), *edges)
        return out
    share = 1 / float(rows.divisor[0] * columns.divisor[0])
    if rows.number == columns.number == 1:
        _over_images(x.size, _mean, (x, out), share)
    else:
        _over_images(x.size, _avg_pool_tiled, (x, out), rows.tile, columns.tile, share)
    return out


def avg_pool2d_backward(g: Array, shape: Shape, rows: Windows, columns: Windows) -> Array:
    """Distribute every element of g evenly over its window."""
    arrays = contiguous(g)
    if arrays is None:
        return reference.avg_pool2d_backward(g, shape, rows, columns)
    (g,) = arrays
    if rows.tile * rows.number != shape[2] or columns.tile * columns.number != shape[3]:
        gradient = np.zeros(shape, dtype=g.dtype)
        edges = rows.start, rows.stop, rows.divisor, columns.start, columns.stop, columns.divisor
        _over_images(gradient.size, _avg_pool_backward, (g, gradient), *edges)
        return gradient
    gradient = np.empty(shape, dtype=g.dtype)
    share = 1 / float(rows.divisor[0] * columns.divisor[0])
    if rows.number == columns.number == 1:
        _over_images(gradient.size, _spread_mean, (g, gradient), share)
    else:
        _over_images(gradient.size, _avg_pool_tiled_backward, (g, gradient), rows.tile, columns.tile, share)
    return gradient


def _over_images(numbers: int, kernel: Callable[..., None], arrays: tuple[Array, ...], *others: Any) -> None:
    """Call the kernel with the arrays, whose first axis is the images; threads divide the images if there are many."""
    if numbers < 2 * WORTH_A_THREAD:
        kernel(*arrays, *others)
        return

    def of_images(begin: int, end: int) -> None:
        kernel(*(array[begin:end] for array in arrays), *others)

    parallel_for(len(arrays[0]), numbers // WORTH_A_THREAD, of_images)


@compiled()
def _max_pool(
    x: Any, out: Any, position: Any, top: Any, bottom: Any, down: int, left: Any, right: Any, across: int
) -> None:
    height, width = x.shape[2], x.shape[3]
    x, maxima, pixels = x.reshape(-1), out.reshape(-1), position.reshape(-1)
    k = 0
    for begin in range(0, x.size, height * width):
        plane = x[begin : begin + height * width]
        for i in range(top.size):
            for j in range(left.size):
                if down != 1 or across != 1:
                    largest, where = _largest(plane, width, top[i], bottom[i], down, left[j], right[j], across)
                elif right[j] - left[j] < MANY_COLUMNS:
                    largest, where = _largest(plane, width, top[i], bottom[i], 1, left[j], right[j], 1)
                else:
                    largest, where = _largest_of_many(plane, width, top[i], bottom[i], left[j], right[j])
                maxima[k], pixels[k] = largest, where
                k += 1


@inner()
def _largest(plane: Any, width: int, top: int, bottom: int, down: int, left: int, right: int, across: int) -> Any:
    where = top * width + left
    largest = plane[np.uint64(where)]
    for y in range(top, bottom, down):
        for z in range(y * width + left, y * width + right, across):
            value = plane[np.uint64(z)]
            if value > largest or value != value:  # nan wins, so that it stays visible
                largest, where = value, z
    return largest, where


@inner()
def _largest_of_many(plane: Any, width: int, top: int, bottom: int, left: int, right: int) -> Any:
    """Find the maximum of a large window with branches, which are predicted well since a new maximum is rare."""
    where = top * width + left
    largest = plane[np.uint64(where)]
    for y in range(top, bottom):
        for z in range(y * width + left, y * width + right):
            value = plane[np.uint64(z)]
            if value <= largest:
                continue
            if value > largest or value != value:
                largest, where = value, z
    return largest, where


@compiled()
def _max_pool_backward(g: Any, position: Any, gradient: Any) -> None:
    planes, outputs, pixels = g.shape[0] * g.shape[1], g.shape[2] * g.shape[3], gradient.shape[2] * gradient.shape[3]
    g, position, gradient = g.reshape(-1), position.reshape(-1), gradient.reshape(-1)
    for plane in range(planes):
        for i in range(plane * outputs, (plane + 1) * outputs):
            gradient[np.uint64(plane * pixels + position[i])] += g[i]


# Rows are added first, by vector instructions; then the sums within each row.


@compiled()
def _avg_pool(x: Any, out: Any, top: Any, bottom: Any, down: Any, left: Any, right: Any, across: Any) -> None:
    n, channels, _, width = x.shape
    sums = np.empty(width, dtype=x.dtype)
    shares = (1 / across).astype(x.dtype)
    for i_n in range(n):
        for c in range(channels):
            plane, means = x[i_n, c], out[i_n, c]
            for i in range(top.size):
                copy(plane[top[i]], sums)
                for y in range(top[i] + 1, bottom[i]):
                    _add(sums, plane[y])
                _scale(sums, x.dtype.type(1 / down[i]))
                for j in range(left.size):
                    total = x.dtype.type(0)
                    for z in range(left[j], right[j]):
                        total += sums[np.uint64(z)]
                    means[i, j] = total * shares[j]


@compiled()
def _avg_pool_backward(
    g: Any, gradient: Any, top: Any, bottom: Any, down: Any, left: Any, right: Any, across: Any
) -> None:
    n, channels, _, width = gradient.shape
    row = np.empty(width, dtype=g.dtype)
    shares = (1 / across).astype(g.dtype)
    for i_n in range(n):
        for c in range(channels):
            plane, means = gradient[i_n, c], g[i_n, c]
            for i in range(top.size):
                row[:] = 0
                share = g.dtype.type(1 / down[i])
                for j in range(left.size):
                    value = means[i, j] * (share * shares[j])
                    for z in range(left[j], right[j]):
                        row[np.uint64(z)] += value
                for y in range(top[i], bottom[i]):
                    _add(plane[y], row)


@inner()
def _add(sums: Any, row: Any) -> None:
    never_inlined()
    for j in range(sums.size):
        sums[j] += row[j]


@inner()
def _scale(sums: Any, share: Any) -> None:
    never_inlined()
    for j in range(sums.size):
        sums[j] *= share


# One window, the whole image: long loops.


@compiled(REASSOCIATE)
def _mean(x: Any, out: Any, share: float) -> None:
    pixels, means, plane = x.reshape(-1), out.reshape(-1), x.shape[2] * x.shape[3]
    for i in range(means.size):
        if plane > BLOCK:  # the loop below, in float32, would have an error of 2e-4 for a million pixels of 0.1
            means[i] = sum_of(pixels[i * plane : (i + 1) * plane]) * share
            continue
        total = x.dtype.type(0)
        for k in range(i * plane, (i + 1) * plane):
            total += pixels[np.uint64(k)]
        means[i] = total * x.dtype.type(share)


@compiled()
def _spread_mean(g: Any, gradient: Any, share: float) -> None:
    means, pixels, plane = g.reshape(-1), gradient.reshape(-1), gradient.shape[2] * gradient.shape[3]
    for i in range(means.size):
        pixels[i * plane : (i + 1) * plane] = means[i] * g.dtype.type(share)


# Adjacent windows: one long loop reduces a whole plane of sums, since loops over single windows are too short for
# vector instructions. 2x2 on 28x28: a third of the time.


@compiled()
def _avg_pool_tiled(x: Any, out: Any, height: int, width: int, part: float) -> None:
    planes, means, share = (
        x.reshape(-1, x.shape[2], x.shape[3]),
        out.reshape(-1, out.shape[2] * out.shape[3]),
        x.dtype.type(part),
    )
    sums = np.empty((out.shape[2], x.shape[3]), dtype=x.dtype)
    for plane in range(planes.shape[0]):
        for i in range(sums.shape[0]):
            for j in range(sums.shape[1]):
                sums[i, j] = share * planes[plane, i * height, j]
            for k in range(1, height):
                for j in range(sums.shape[1]):
                    sums[i, j] += share * planes[plane, i * height + k, j]
        _narrow(sums.reshape(-1), means[plane], width)


@inner()
def _narrow(sums: Any, out: Any, width: int) -> None:
    """out[j] = sums[width j] + ... + sums[width j + width - 1]"""
    never_inlined()
    if width == 2:  # LLVM vectorizes a constant step
        for j in range(out.size):
            out[j] = sums[2 * j] + sums[2 * j + 1]
    else:
        for j in range(out.size):
            out[j] = sums[width * j]
            for k in range(1, width):
                out[j] += sums[width * j + k]


@compiled()
def _avg_pool_tiled_backward(g: Any, gradient: Any, height: int, width: int, part: float) -> None:
    means, planes = g.reshape(-1, g.shape[2] * g.shape[3]), gradient.reshape(-1, gradient.shape[2], gradient.shape[3])
    shares, share = np.empty((g.shape[2], gradient.shape[3]), dtype=g.dtype), g.dtype.type(part)
    for plane in range(means.shape[0]):
        _widen(means[plane], share, shares.reshape(-1), width)
        for i in range(planes.shape[1]):
            copy(shares[i // height], planes[plane, i])


@inner()
def _widen(g: Any, share: Any, shares: Any, width: int) -> None:
    """shares[width j], ..., shares[width j + width - 1] = share g[j]"""
    never_inlined()
    if width == 2:
        for j in range(g.size):
            shares[2 * j] = share * g[j]
            shares[2 * j + 1] = share * g[j]
    else:
        for j in range(g.size):
            for k in range(width):
                shares[width * j + k] = share * g[j]
