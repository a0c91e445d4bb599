"""Convolution without unfolding: images are laid out row after row with zeros between, and slid over themselves.

layout.py    where the numbers lie, so that every tap of the filter is one constant shift
sliding.py   the inner loops
here         image -> rows -> sums -> image, for the output and for both gradients
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import compiled, inner
from minidl.kernels.jit.eligible import eligible
from minidl.kernels.jit.layout import Layout, layout_backward, layout_forward
from minidl.kernels.jit.sliding import correlate, slide

__all__ = ["conv2d", "conv2d_backward_input", "conv2d_backward_weight"]

Pair = tuple[int, int]

# A window of one pixel needs no unfolding: there the reference is already nothing but a matrix product.


def conv2d(x: Array, weight: Array, bias: Array | None, stride: Pair, padding: Pair) -> Array:
    """x (n, c, h, w), weight (f, c, kh, kw), bias (f,) -> (n, f, oh, ow)."""
    shift = np.zeros(len(weight), dtype=x.dtype) if bias is None else bias
    if not eligible(x, weight, shift) or weight.shape[2:] == (1, 1):
        return reference.conv2d(x, weight, bias, stride, padding)
    layout = layout_forward(x.shape, weight.shape[2:], stride, padding)
    out = np.empty((len(x), len(weight), *layout.size), dtype=x.dtype)
    _slide_images(x, layout, weight.reshape(len(weight), -1), shift, out)
    return out


def conv2d_backward_input(g: Array, weight: Array, shape: tuple[int, ...], stride: Pair, padding: Pair) -> Array:
    """g (n, f, oh, ow) -> the gradient with respect to x, of the given shape: g slid over by the mirrored filters.

    With a stride of s, the pixels fall into s x s classes, each reached by other taps: one convolution for each.
    """
    if not eligible(g, weight) or weight.shape[2:] == (1, 1):
        return reference.conv2d_backward_input(g, weight, shape, stride, padding)
    gradient = np.empty(shape, dtype=g.dtype)
    zeros = np.zeros(shape[1], dtype=g.dtype)
    for i in range(stride[0]):
        for j in range(stride[1]):
            layout = layout_backward(g.shape, shape, weight.shape[2:], stride, padding, (i, j))
            taps = weight[:, :, i :: stride[0], j :: stride[1]].swapaxes(0, 1)
            _slide_images(g, layout, taps.reshape(shape[1], -1), zeros, gradient)
    return gradient


def conv2d_backward_weight(g: Array, x: Array, shape: tuple[int, ...], stride: Pair, padding: Pair) -> Array:
    """g (n, f, oh, ow), x (n, c, h, w) -> the gradient with respect to the weight, of the given shape."""
    if not eligible(g, x) or shape[2:] == (1, 1):
        return reference.conv2d_backward_weight(g, x, shape, stride, padding)
    layout = layout_forward(x.shape, shape[2:], stride, padding)
    gradient = np.zeros((_multiple_of_4(shape[0]), layout.shifts.size), dtype=x.dtype)
    rows = np.zeros((layout.planes, layout.plane_size), dtype=x.dtype)
    tile = np.zeros((len(gradient), layout.tile_size), dtype=x.dtype)
    _correlate_groups(x, g, rows, tile, layout.shifts, gradient, *layout.numbers)
    return gradient[: shape[0], : layout.taps].reshape(shape)


def _slide_images(x: Array, layout: Layout, taps: Array, bias: Array, out: Array) -> None:
    filters = _multiple_of_4(len(taps))
    weights = np.zeros((filters, layout.shifts.size), dtype=x.dtype)
    weights[: len(taps), : layout.taps] = taps
    rows = np.zeros((layout.planes, layout.plane_size), dtype=x.dtype)
    tile = np.empty((filters, layout.tile_size), dtype=x.dtype)
    _slide_groups(x, rows, layout.shifts, weights, bias, tile, out, *layout.numbers)


def _multiple_of_4(n: int) -> int:
    return -(-n // 4) * 4


@compiled()
def _slide_groups(
    x: Any, rows: Any, shifts: Any, weights: Any, bias: Any, tile: Any, out: Any,
    group: int, lead: Any, stride: Any, height: int, pitch: int, tile_rows: int, count: Any, step: Any, first: Any,
) -> None:  # fmt: skip
    flat, sums, (filters, h, w) = out.reshape(-1), tile.reshape(-1), out.shape[1:]
    for begin in range(0, x.shape[0], group):
        end = min(begin + group, x.shape[0])
        _lay_out(x[begin:end], rows, lead, stride, height, pitch)
        for row in range(0, (end - begin - 1) * height + count[0], tile_rows):
            slide(rows.reshape(-1), row * pitch, shifts, weights, tile)
            for r in range(row, min(row + tile_rows, (end - begin) * height)):
                i, y = begin + r // height, r % height * step[0] + first[0]
                if r % height < count[0]:
                    for f in range(filters):
                        target = ((i * filters + f) * h + y) * w + first[1]
                        source = f * tile.shape[1] + (r - row) * pitch
                        _copy(sums, source, 1, flat, target, step[1], count[1], bias[f])


@compiled()
def _correlate_groups(
    x: Any, g: Any, rows: Any, tile: Any, shifts: Any, gradient: Any,
    group: int, lead: Any, stride: Any, height: int, pitch: int, tile_rows: int, count: Any, step: Any, first: Any,
) -> None:  # fmt: skip
    flat, places, zero = g.reshape(-1), tile.reshape(-1), g.dtype.type(0)
    for begin in range(0, x.shape[0], group):
        end = min(begin + group, x.shape[0])
        _lay_out(x[begin:end], rows, lead, stride, height, pitch)
        for row in range(0, (end - begin - 1) * height + count[0], tile_rows):
            tile[:] = 0
            for r in range(row, min(row + tile_rows, (end - begin) * height)):
                i, y = begin + r // height, r % height
                if y < count[0]:
                    for f in range(g.shape[1]):
                        source, target = ((i * g.shape[1] + f) * count[0] + y) * count[1], f * tile.shape[1]
                        _copy(flat, source, 1, places, target + (r - row) * pitch, 1, count[1], zero)
            correlate(rows.reshape(-1), row * pitch, shifts, tile, gradient)


@inner()
def _lay_out(x: Any, rows: Any, lead: Any, stride: Any, height: int, pitch: int) -> None:
    """Write the images one below the other into the planes, a plane for each channel and class of pixels."""
    (n, channels, h, w), flat, places, zero = x.shape, x.reshape(-1), rows.reshape(-1), x.dtype.type(0)
    for c in range(channels):
        for y in range(h):
            i, down = (y + lead[0]) % stride[0], (y + lead[0]) // stride[0]
            for j in range(stride[1]):
                plane = ((c * stride[0] + i) * stride[1] + j) * rows.shape[1]
                begin = max(-((j - lead[1]) // stride[1]), 0)  # the first position that holds a pixel
                skipped = begin * stride[1] + j - lead[1]
                count = (w - skipped + stride[1] - 1) // stride[1]
                for image in range(n):
                    source = ((image * channels + c) * h + y) * w + skipped
                    target = plane + (image * height + down) * pitch + begin
                    _copy(flat, source, stride[1], places, target, 1, count, zero)


@inner()
def _copy(a: Any, source: int, stride: int, b: Any, target: int, step: int, count: int, bias: Any) -> None:
    """b[target + step k] = a[source + stride k] + bias"""
    s, t = np.uint64(source), np.uint64(target)
    if stride == 1 and step == 1:  # these cases apart from the others: with a constant step LLVM makes vectors
        for k in range(count):
            b[t + np.uint64(k)] = a[s + np.uint64(k)] + bias
    elif stride == 2 and step == 1:
        for k in range(count):
            b[t + np.uint64(k)] = a[s + np.uint64(2 * k)] + bias
    elif stride == 1 and step == 2:
        for k in range(count):
            b[t + np.uint64(2 * k)] = a[s + np.uint64(k)] + bias
    else:
        for k in range(count):
            b[t + np.uint64(step * k)] = a[s + np.uint64(stride * k)] + bias
