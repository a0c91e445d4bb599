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
    _correlate_images(x, g, rows, tile, layout.shifts, gradient, *layout.numbers)
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
    for begin in range(0, x.shape[0], group):
        end = min(begin + group, x.shape[0])
        _lay_out(x[begin:end], rows, lead, stride, height, pitch)
        for row in range(0, (end - begin - 1) * height + count[0], tile_rows):
            slide(rows.reshape(-1), row * pitch, shifts, weights, tile)
            for r in range(row, min(row + tile_rows, (end - begin) * height)):
                i, y, offset = begin + r // height, r % height, (r - row) * pitch
                if y < count[0]:
                    for f in range(out.shape[1]):
                        line, sums = out[i, f, y * step[0] + first[0]], tile[f, offset : offset + count[1]]
                        if step[1] == 1:
                            for j in range(count[1]):
                                line[first[1] + j] = sums[j] + bias[f]
                        else:
                            for j in range(count[1]):
                                line[first[1] + j * step[1]] = sums[j] + bias[f]


@compiled()
def _correlate_images(
    x: Any, g: Any, rows: Any, tile: Any, shifts: Any, gradient: Any,
    group: int, lead: Any, stride: Any, height: int, pitch: int, tile_rows: int, count: Any, step: Any, first: Any,
) -> None:  # fmt: skip
    for begin in range(0, x.shape[0], group):
        end = min(begin + group, x.shape[0])
        _lay_out(x[begin:end], rows, lead, stride, height, pitch)
        for row in range(0, (end - begin - 1) * height + count[0], tile_rows):
            tile[:] = 0
            for r in range(row, min(row + tile_rows, (end - begin) * height)):
                i, y, offset = begin + r // height, r % height, (r - row) * pitch
                if y < count[0]:
                    for f in range(g.shape[1]):
                        for j in range(count[1]):
                            tile[f, offset + j] = g[i, f, y, j]
            correlate(rows.reshape(-1), row * pitch, shifts, tile, gradient)


@inner()
def _lay_out(x: Any, rows: Any, lead: Any, stride: Any, height: int, pitch: int) -> None:
    """Write the images one below the other into the planes, a plane for each channel and class of pixels."""
    n, channels, h = x.shape[:3]
    for c in range(channels):
        for y in range(h):
            i, down = (y + lead[0]) % stride[0], (y + lead[0]) // stride[0]
            for j in range(stride[1]):
                plane = rows[(c * stride[0] + i) * stride[1] + j]
                begin = max(-((j - lead[1]) // stride[1]), 0)  # the first position that holds a pixel
                source = begin * stride[1] + j - lead[1]
                for image in range(n):
                    line = plane[(image * height + down) * pitch + begin :]
                    pixels = x[image, c, y, source:]
                    if stride[1] == 1:
                        for k in range(pixels.size):
                            line[k] = pixels[k]
                    else:
                        for k in range((pixels.size + stride[1] - 1) // stride[1]):
                            line[k] = pixels[k * stride[1]]
