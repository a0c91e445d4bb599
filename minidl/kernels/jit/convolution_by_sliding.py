"""Convolution without unfolding: images are laid out row by row with zeros in between, and slid over themselves.

layout.py    positions in memory, chosen so that every tap of the filter is one constant shift
sliding.py   the inner loops
here         image -> rows -> sums -> image, for the output and for both gradients
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import compiled, inner
from minidl.kernels.jit.layout import Layout, layout_backward, layout_forward, taps_of_class
from minidl.kernels.jit.sliding import correlate, slide

Pair = tuple[int, int]
Shape = tuple[int, ...]


def conv2d(
    x: Array, weight: Array, bias: Array | None, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """x (n, c, h, w), weight (f, c / groups, kh, kw), bias (f,) -> (n, f, oh, ow)."""
    shift = np.zeros(len(weight), dtype=x.dtype) if bias is None else bias
    layout = layout_forward((len(x), *weight.shape[1:2], *x.shape[2:]), weight.shape[2:], stride, padding, dilation)
    out = np.empty((len(x), len(weight), *layout.size), dtype=x.dtype)
    _slide(x, layout, weight.reshape(groups, len(weight) // groups, -1), shift, out)
    return out


def conv2d_backward_input(
    g: Array, weight: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """g (n, f, oh, ow) -> the gradient with respect to x, of the given shape: g slid over by the mirrored filters.

    With a stride of s, the pixels fall into s x s classes, each reached by other taps: one convolution for each.
    """
    if not np.isfinite(weight.sum()):  # beyond the border g is 0: 0 * inf; the windows alone decide
        return reference.conv2d_backward_input(g, weight, shape, stride, padding, dilation, groups)
    gradient = np.empty(shape, dtype=g.dtype)
    zeros = np.zeros(shape[1], dtype=g.dtype)
    filters, window = len(weight) // groups, weight.shape[2:]
    g_shape = (len(g), filters, *g.shape[2:])
    mirrored = weight.reshape(groups, filters, *weight.shape[1:]).swapaxes(1, 2)
    for i in range(stride[0]):
        for j in range(stride[1]):
            layout = layout_backward(g_shape, shape, window, stride, padding, dilation, (i, j))
            rows, columns = (taps_of_class(window[d], stride[d], dilation[d], (i, j)[d]) for d in (0, 1))
            taps = mirrored[..., rows, columns]
            _slide(g, layout, taps.reshape(groups, weight.shape[1], -1), zeros, gradient)
    return gradient


def conv2d_backward_weight(
    g: Array, x: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """g (n, f, oh, ow), x (n, c, h, w) -> the gradient with respect to the weight, of the given shape."""
    layout = layout_forward((len(x), *shape[1:2], *x.shape[2:]), shape[2:], stride, padding, dilation)
    filters = shape[0] // groups
    even = filters + filters % 2
    gradient = np.zeros((groups, even, layout.shifts.size), dtype=x.dtype)
    rows = np.zeros((layout.planes, layout.plane_size), dtype=x.dtype)
    tile = np.zeros((even, layout.tile_size), dtype=x.dtype)
    _correlate(x, g, rows, tile, layout.shifts, gradient, *layout.numbers)
    gradient = gradient[:, :filters, : layout.taps].reshape(shape)
    if np.isnan(gradient).any():  # between the rows g is 0, and x may be infinite: 0 * inf; the windows alone decide
        return reference.conv2d_backward_weight(g, x, shape, stride, padding, dilation, groups)
    return gradient


def _slide(x: Array, layout: Layout, taps: Array, bias: Array, out: Array) -> None:
    """taps: (groups, filters of a group, taps of a filter)"""
    if taps.shape[1] % 2 == 1:  # filters are slid two or four at a time; what the last one gives is not read
        taps = np.concatenate((taps, np.zeros_like(taps[:, :1])), axis=1)
    rows = np.zeros((layout.planes, layout.plane_size), dtype=x.dtype)
    tile = np.empty((taps.shape[1], layout.tile_size), dtype=x.dtype)
    shifts = layout.shifts[: layout.taps]
    _slide_over_images(x, rows, shifts, np.ascontiguousarray(taps), bias, tile, out, *layout.numbers)


@compiled()
def _slide_over_images(
    x: Any, rows: Any, shifts: Any, weights: Any, bias: Any, tile: Any, out: Any,
    images: int, lead: Any, stride: Any, height: int, pitch: int, tile_rows: int, count: Any, step: Any, first: Any,
) -> None:  # fmt: skip
    flat, sums, (filters, h, w) = out.reshape(-1), tile.reshape(-1), out.shape[1:]
    groups = weights.shape[0]
    own = filters // groups
    channels = x.shape[1] // groups
    for begin in range(0, x.shape[0], images):
        end = min(begin + images, x.shape[0])
        for group in range(groups):
            lay_out(x[begin:end], group * channels, channels, rows, lead, stride, height, pitch)
            for row in range(0, (end - begin - 1) * height + count[0], tile_rows):
                slide(rows.reshape(-1), row * pitch, shifts, weights[group], tile)
                for r in range(row, min(row + tile_rows, (end - begin) * height)):
                    i, y = begin + r // height, r % height * step[0] + first[0]
                    if r % height < count[0]:
                        for f in range(own):
                            target = ((i * filters + group * own + f) * h + y) * w + first[1]
                            source = f * tile.shape[1] + (r - row) * pitch
                            _copy(sums, source, 1, flat, target, step[1], count[1], bias[group * own + f])


@compiled()
def _correlate(
    x: Any, g: Any, rows: Any, tile: Any, shifts: Any, gradient: Any,
    images: int, lead: Any, stride: Any, height: int, pitch: int, tile_rows: int, count: Any, step: Any, first: Any,
) -> None:  # fmt: skip
    flat, places, zero = g.reshape(-1), tile.reshape(-1), g.dtype.type(0)
    groups = gradient.shape[0]
    own = g.shape[1] // groups
    channels = x.shape[1] // groups
    for begin in range(0, x.shape[0], images):
        end = min(begin + images, x.shape[0])
        for group in range(groups):
            lay_out(x[begin:end], group * channels, channels, rows, lead, stride, height, pitch)
            for row in range(0, (end - begin - 1) * height + count[0], tile_rows):
                tile[:] = 0
                for r in range(row, min(row + tile_rows, (end - begin) * height)):
                    i, y = begin + r // height, r % height
                    if y < count[0]:
                        for f in range(own):
                            source = ((i * g.shape[1] + group * own + f) * count[0] + y) * count[1]
                            target = f * tile.shape[1] + (r - row) * pitch
                            _copy(flat, source, 1, places, target, 1, count[1], zero)
                correlate(rows.reshape(-1), row * pitch, shifts, tile, gradient[group])


@inner()
def lay_out(x: Any, first: int, channels: int, rows: Any, lead: Any, stride: Any, height: int, pitch: int) -> None:
    """Write channels first : first + channels of the images into the planes, one plane for each class of pixels."""
    (n, all_channels, h, w), flat, places, zero = x.shape, x.reshape(-1), rows.reshape(-1), x.dtype.type(0)
    for c in range(channels):
        for y in range(h):
            i, down = (y + lead[0]) % stride[0], (y + lead[0]) // stride[0]
            for j in range(stride[1]):
                plane = ((c * stride[0] + i) * stride[1] + j) * rows.shape[1]
                begin = max(-((j - lead[1]) // stride[1]), 0)  # the first position that holds a pixel
                skipped = begin * stride[1] + j - lead[1]
                count = (w - skipped + stride[1] - 1) // stride[1]
                for image in range(n):
                    source = ((image * all_channels + first + c) * h + y) * w + skipped
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
