"""Pooling over windows of an image: every window is read once, every row of the result written once."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import compiled, inner
from minidl.kernels.jit.eligible import eligible
from minidl.kernels.jit.never_inlined import never_inlined

__all__ = ["avg_pool2d", "avg_pool2d_backward", "max_pool2d", "max_pool2d_backward"]

Pair = tuple[int, int]
Shape = tuple[int, ...]

# Compiled: maxima of windows without padding, means of windows side by side. All others are the reference's.


def max_pool2d(x: Array, window: Pair, stride: Pair, padding: Pair) -> tuple[Array, Array]:
    """x (n, c, h, w) -> the maxima (n, c, oh, ow), and the position kw i + j of each in its window."""
    if not eligible(x) or padding != (0, 0):
        return reference.max_pool2d(x, window, stride, padding)
    out = np.empty(_output_shape(x.shape, window, stride), dtype=x.dtype)
    position = np.empty(out.shape, dtype=np.int32)
    _max_pool(_planes(x), _planes(out), _planes(position), window, stride)
    return out, position


def max_pool2d_backward(g: Array, position: Array, shape: Shape, window: Pair, stride: Pair, padding: Pair) -> Array:
    """Every number of g goes to the element that was the maximum of its window."""
    if not eligible(g) or padding != (0, 0):
        return reference.max_pool2d_backward(g, position, shape, window, stride, padding)
    gradient = np.zeros(shape, dtype=g.dtype)
    _max_pool_backward(_planes(g), _planes(position), _planes(gradient), window, stride)
    return gradient


def avg_pool2d(x: Array, window: Pair, stride: Pair, padding: Pair) -> Array:
    """x (n, c, h, w) -> the means (n, c, oh, ow)."""
    if not eligible(x) or not _tiled(x.shape, window, stride, padding):
        return reference.avg_pool2d(x, window, stride, padding)
    out = np.empty(_output_shape(x.shape, window, stride), dtype=x.dtype)
    sums = np.empty((out.shape[2], x.shape[3]), dtype=x.dtype)
    _avg_pool(_planes(x), sums, out.reshape(-1, out.shape[2] * out.shape[3]), *window)
    return out


def avg_pool2d_backward(g: Array, shape: Shape, window: Pair, stride: Pair, padding: Pair) -> Array:
    """Every number of g is shared out evenly over its window."""
    if not eligible(g) or not _tiled(shape, window, stride, padding):
        return reference.avg_pool2d_backward(g, shape, window, stride, padding)
    gradient = np.empty(shape, dtype=g.dtype)
    shares = np.empty((g.shape[2], shape[3]), dtype=g.dtype)
    _avg_pool_backward(g.reshape(-1, g.shape[2] * g.shape[3]), shares, _planes(gradient), *window)
    return gradient


def _tiled(shape: Shape, window: Pair, stride: Pair, padding: Pair) -> bool:
    """Whether the windows lie side by side and cover the image: as usual, and what the loops below are for."""
    return padding == (0, 0) and stride == window and shape[2] % window[0] == 0 == shape[3] % window[1]


def _output_shape(shape: Shape, window: Pair, stride: Pair) -> Shape:
    return *shape[:2], (shape[2] - window[0]) // stride[0] + 1, (shape[3] - window[1]) // stride[1] + 1


def _planes(x: Array) -> Array:
    """(n, c, h, w) -> (n c, h, w)."""
    return x.reshape(-1, *x.shape[2:])


@compiled()
def _max_pool(x: Any, out: Any, position: Any, window: Any, stride: Any) -> None:
    for plane in range(x.shape[0]):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                y, z = i * stride[0], j * stride[1]
                largest, where = x[plane, y, z], 0
                for k in range(window[0]):
                    for l in range(window[1]):  # noqa: E741
                        value = x[plane, y + k, z + l]
                        if value > largest or value != value:  # not a number wins, so that it is seen
                            largest, where = value, k * window[1] + l
                out[plane, i, j], position[plane, i, j] = largest, where


@compiled()
def _max_pool_backward(g: Any, position: Any, gradient: Any, window: Any, stride: Any) -> None:
    for plane in range(g.shape[0]):
        for i in range(g.shape[1]):
            for j in range(g.shape[2]):
                k, l = divmod(position[plane, i, j], window[1])  # noqa: E741
                gradient[plane, i * stride[0] + k, j * stride[1] + l] += g[plane, i, j]


# Both directions by themselves: rows are added to rows, then a whole plane of sums is narrowed in one long loop; the
# windows' own loops would be too short for vector instructions. 2x2 on 28x28: a third of the time.


@compiled()
def _avg_pool(x: Any, sums: Any, out: Any, height: int, width: int) -> None:
    share = x.dtype.type(1 / (height * width))
    for plane in range(x.shape[0]):
        for i in range(sums.shape[0]):
            for j in range(sums.shape[1]):
                sums[i, j] = share * x[plane, i * height, j]
            for k in range(1, height):
                for j in range(sums.shape[1]):
                    sums[i, j] += share * x[plane, i * height + k, j]
        _narrow(sums.reshape(-1), out[plane], width)


@inner()
def _narrow(sums: Any, out: Any, width: int) -> None:
    """out[j] = sums[width j] + ... + sums[width j + width - 1]"""
    never_inlined()
    if width == 2:  # a constant step, which LLVM turns into vectors
        for j in range(out.size):
            out[j] = sums[2 * j] + sums[2 * j + 1]
    else:
        for j in range(out.size):
            out[j] = sums[width * j]
            for k in range(1, width):
                out[j] += sums[width * j + k]


@compiled()
def _avg_pool_backward(g: Any, shares: Any, gradient: Any, height: int, width: int) -> None:
    share = g.dtype.type(1 / (height * width))
    for plane in range(g.shape[0]):
        _widen(g[plane], share, shares.reshape(-1), width)
        for i in range(gradient.shape[1]):
            gradient[plane, i] = shares[i // height]


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
