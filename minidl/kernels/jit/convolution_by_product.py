"""Convolution by unfolding: every window becomes a column of a matrix, and BLAS multiplies it by the filters.

A block of images at a time, so that the columns stay in the second cache: one product for all of the block's columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minidl.kernels import Array
from minidl.kernels.jit.compiled import compiled, inner
from minidl.kernels.reference.windows import output_size

Pair = tuple[int, int]
Shape = tuple[int, ...]

BLOCK = 1 << 18  # numbers of a block of columns: 1 MiB of float32


def conv2d(
    x: Array, weight: Array, bias: Array | None, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """x (n, c, h, w), weight (f, c / groups, kh, kw), bias (f,) -> (n, f, oh, ow)."""
    matrices = weight.reshape(groups, len(weight) // groups, -1)
    size = output_size(x.shape, weight.shape[2:], stride, padding, dilation)
    out = np.empty((len(x), len(weight), *size), dtype=x.dtype)
    shift = np.zeros(len(weight), dtype=x.dtype) if bias is None else bias
    for begin, end, columns in _blocks(x, matrices.shape[2], size[0] * size[1]):
        for group in range(groups):
            _unfold(x[begin:end], group, weight.shape[1], weight.shape[2:], stride, padding, dilation, size, columns)
            _spread(matrices[group] @ columns.reshape(len(columns), -1), out[begin:end], group, shift)
    return out


def conv2d_backward_input(
    g: Array, weight: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """g (n, f, oh, ow) -> the gradient with respect to x, of the given shape."""
    matrices = weight.reshape(groups, len(weight) // groups, -1)
    size = g.shape[2:]
    gradient = np.zeros(shape, dtype=g.dtype)
    for begin, end, _ in _blocks(g, matrices.shape[2], size[0] * size[1]):
        for group in range(groups):
            columns = matrices[group].T @ _gather(g[begin:end], group, matrices.shape[1])
            columns = columns.reshape(len(columns), end - begin, size[0] * size[1])
            _fold(columns, group, weight.shape[2:], stride, padding, dilation, size, gradient[begin:end])
    return gradient


def conv2d_backward_weight(
    g: Array, x: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """g (n, f, oh, ow), x (n, c, h, w) -> the gradient with respect to the weight, of the given shape."""
    gradient = np.zeros((groups, shape[0] // groups, shape[1] * shape[2] * shape[3]), dtype=x.dtype)
    size = g.shape[2:]
    for begin, end, columns in _blocks(x, gradient.shape[2], size[0] * size[1]):
        for group in range(groups):
            _unfold(x[begin:end], group, shape[1], shape[2:], stride, padding, dilation, size, columns)
            gradient[group] += _gather(g[begin:end], group, gradient.shape[1]) @ columns.reshape(len(columns), -1).T
    return gradient.reshape(shape)


def _blocks(x: Array, taps: int, positions: int) -> Iterator[tuple[int, int, Array]]:
    """For each block of images: where it begins and ends, and memory for its columns, (taps, images, positions)."""
    blocks = -(-len(x) // max(1, BLOCK // (taps * positions)))
    images = -(-len(x) // blocks)
    memory = np.empty(taps * images * positions, dtype=x.dtype)
    for begin in range(0, len(x), images):
        end = min(begin + images, len(x))
        yield begin, end, memory[: taps * (end - begin) * positions].reshape(taps, end - begin, positions)


def _gather(g: Array, group: int, filters: int) -> Array:
    """The group's part of g (n, f, oh, ow) as (f / groups, n oh ow)."""
    own = g[:, group * filters : (group + 1) * filters]
    return own.swapaxes(0, 1).reshape(filters, -1)


@compiled()
def _spread(products: Any, out: Any, group: int, bias: Any) -> None:
    """out[i, f, p] = products[f of the group, i, p] + bias[f]"""
    n, filters, positions = out.shape[0], products.shape[0], out.shape[2] * out.shape[3]
    source, target = products.reshape(-1), out.reshape(-1)
    for i in range(n):
        for k in range(filters):
            f = group * filters + k
            begin, end = (k * n + i) * positions, (i * out.shape[1] + f) * positions
            for p in range(positions):
                target[np.uint64(end + p)] = source[np.uint64(begin + p)] + bias[f]


@compiled()
def _unfold(
    x: Any, group: int, channels: int, window: Any, stride: Any, padding: Any, dilation: Any, size: Any, columns: Any
) -> None:
    """columns[(c, k, l), i, (y, z)] = x[i, c of the group, y stride + k dilation - padding, ...], 0 in the padding"""
    n, all_channels, h, w = x.shape
    flat, target, zero = x.reshape(-1), columns.reshape(-1), x.dtype.type(0)
    place = 0
    for c in range(channels):
        for k in range(window[0]):
            for l in range(window[1]):  # noqa: E741
                first, last = _inside(w, l * dilation[1] - padding[1], stride[1], size[1])
                for i in range(n):
                    plane = (i * all_channels + group * channels + c) * h
                    for y in range(size[0]):
                        row = y * stride[0] + k * dilation[0] - padding[0]
                        if row < 0 or row >= h:
                            target[place : place + size[1]] = zero
                        else:
                            source = (plane + row) * w + l * dilation[1] - padding[1]
                            target[place : place + first] = zero
                            _read(flat, source + first * stride[1], stride[1], target, place + first, last - first)
                            target[place + last : place + size[1]] = zero
                        place += size[1]


@compiled()
def _fold(
    columns: Any, group: int, window: Any, stride: Any, padding: Any, dilation: Any, size: Any, gradient: Any
) -> None:
    """The transpose of `_unfold`: every number of the columns is added to the pixel that it came from."""
    n, all_channels, h, w = gradient.shape
    channels = columns.shape[0] // (window[0] * window[1])
    flat, target = columns.reshape(-1), gradient.reshape(-1)
    place = 0
    for c in range(channels):
        for k in range(window[0]):
            for l in range(window[1]):  # noqa: E741
                first, last = _inside(w, l * dilation[1] - padding[1], stride[1], size[1])
                for i in range(n):
                    plane = (i * all_channels + group * channels + c) * h
                    for y in range(size[0]):
                        row = y * stride[0] + k * dilation[0] - padding[0]
                        if row >= 0 and row < h:
                            pixel = (plane + row) * w + l * dilation[1] - padding[1] + first * stride[1]
                            _add(flat, place + first, target, pixel, stride[1], last - first)
                        place += size[1]


@inner()
def _inside(width: int, offset: int, stride: int, count: int) -> Any:
    """The windows first, ..., last - 1 of `count` for which stride i + offset is a pixel."""
    first = min(count, max(0, -(offset // stride)))
    return first, max(first, min(count, (width - 1 - offset) // stride + 1))


@inner()
def _read(a: Any, source: int, stride: int, b: Any, target: int, count: int) -> None:
    """b[target + k] = a[source + stride k]"""
    s, t = np.uint64(source), np.uint64(target)
    if stride == 1:
        for k in range(count):
            b[t + np.uint64(k)] = a[s + np.uint64(k)]
    else:
        for k in range(count):
            b[t + np.uint64(k)] = a[s + np.uint64(stride * k)]


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
