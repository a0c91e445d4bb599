"""Convolution without unfolding: images are copied to rows with zeros in between, so that every tap is a shift.

layout.py    positions in memory, chosen so that every tap of the filter is one constant shift
sliding.py   the inner loops
this file    image -> rows -> sums -> image, for the output and for both gradients

Threads divide the images. The gradient of the weights is a sum over images, computed as at most 8 partial sums that are
added at the end. So the order of additions, and with it the bits, are the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import compiled, inner
from minidl.kernels.jit.layout import Layout, layout_backward, layout_forward, taps_of_class
from minidl.kernels.jit.rows import copy_row, merge_rows, split_row
from minidl.kernels.jit.sliding import correlate, slide
from minidl.kernels.parallel_for import parallel_for

Pair = tuple[int, int]
Shape = tuple[int, ...]

WORTH_A_THREAD = 4_000_000  # multiply-adds; they take 140 us with 16 channels, 280 us with one
SECTIONS = 8  # most partial sums of the gradient of the weights, each over a section of the images


def conv2d(
    x: Array, weight: Array, bias: Array | None, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """x (n, c, h, w), weight (f, c / groups, kh, kw), bias (f,) -> (n, f, oh, ow)."""
    shift = np.zeros(len(weight), dtype=x.dtype) if bias is None else bias
    channels, window, side = weight.shape[1], weight.shape[2:], x.shape[2:]

    def layout_of(images: int) -> Layout:
        return layout_forward((images, channels, *side), window, stride, padding, dilation, is_near=True)

    out = np.empty((len(x), len(weight), *layout_of(len(x)).size), dtype=x.dtype)
    _slide(x, layout_of, [weight.reshape(groups, len(weight) // groups, -1)], shift, out)
    return out


def conv2d_backward_input(
    g: Array, weight: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """g (n, f, oh, ow) -> the gradient with respect to x, of the given shape: g convolved with the mirrored filters.

    With a stride of s, the pixels fall into s x s classes, each with its own taps: one convolution for each class. All
    read the same layout of g, and the classes of a row are merged as they are written. Measured on one core with AVX2,
    stride 2, 64 images: 1.5 to 2.3 times as fast as a layout of g and a pass over the gradient for each class.
    """
    if not np.isfinite(weight.sum()):  # the zeros around g would give 0 * inf = nan
        return reference.conv2d_backward_input(g, weight, shape, stride, padding, dilation, groups)
    gradient = np.empty(shape, dtype=g.dtype)
    zeros = np.zeros(shape[1], dtype=g.dtype)
    filters, window = len(weight) // groups, weight.shape[2:]

    def layout_of(images: int) -> Layout:
        return layout_backward((images, filters, *g.shape[2:]), shape, window, stride, padding, dilation)

    mirrored = weight.reshape(groups, filters, *weight.shape[1:]).swapaxes(1, 2)
    rows, columns = ([taps_of_class(window[d], stride[d], dilation[d], a) for a in range(stride[d])] for d in (0, 1))
    taps = [mirrored[..., i, j].reshape(groups, weight.shape[1], -1) for i in rows for j in columns]
    _slide(g, layout_of, taps, zeros, gradient)
    return gradient


def conv2d_backward_weight(
    g: Array, x: Array, shape: Shape, stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> Array:
    """g (n, f, oh, ow), x (n, c, h, w) -> the gradient with respect to the weight, of the given shape."""
    layout = layout_forward((len(x), *shape[1:2], *x.shape[2:]), shape[2:], stride, padding, dilation)
    filters, images = shape[0] // groups, layout.numbers[0]
    share = -(-len(x) // (images * SECTIONS)) * images
    partial = np.zeros((-(-len(x) // share), groups, filters + filters % 2, layout.shifts.size), dtype=x.dtype)

    def of_turns(begin: int, end: int) -> None:
        rows = np.zeros((layout.planes, layout.plane_size), dtype=x.dtype)
        tile = np.zeros((4, layout.tile_size), dtype=x.dtype)
        _correlate(x, g, begin, end, share, rows, tile, layout.shifts, partial, *layout.numbers)

    parallel_for(len(partial) * groups * -(-filters // 4), g.size * layout.taps // WORTH_A_THREAD, of_turns)
    gradient = partial.sum(axis=0)[:, :filters, : layout.taps].reshape(shape)
    if np.isnan(gradient).any():  # perhaps from 0 * inf, with a zero between the rows
        return reference.conv2d_backward_weight(g, x, shape, stride, padding, dilation, groups)
    return gradient


def _slide(x: Array, layout_of: Callable[[int], Layout], taps: list[Array], bias: Array, out: Array) -> None:
    """layout_of: the layout of a number of images; taps: of each class of pixels, (groups, filters of a group, taps)"""
    groups, own, _ = taps[0].shape
    if own % 2 == 1:  # filters are processed two or four at a time; the result of the padding is not read
        taps = [np.concatenate((part, np.zeros_like(part[:, :1])), axis=1) for part in taps]
    weights = np.concatenate([part.reshape(groups, -1) for part in taps], axis=1)

    def of_images(begin: int, end: int) -> None:
        layout = layout_of(end - begin)
        rows = np.zeros((layout.planes, layout.plane_size), dtype=x.dtype)
        tile = np.empty((len(layout.across), own + own % 2, layout.tile_size), dtype=x.dtype)
        _slide_over_images(
            x[begin:end], rows, layout.shifts, layout.ends, weights, bias, tile, out[begin:end], *layout.numbers,
            layout.down, layout.across,
        )  # fmt: skip

    work = out.size * sum(part.shape[2] for part in taps) // len(taps)
    parallel_for(len(x), work // WORTH_A_THREAD, of_images)


@compiled()
def _slide_over_images(
    x: Any, rows: Any, shifts: Any, ends: Any, weights: Any, bias: Any, tile: Any, out: Any,
    images: int, lead: Any, stride: Any, apart: int, pitch: int, tile_rows: int, down: Any, across: Any,
) -> None:  # fmt: skip
    (classes, even, _), groups = tile.shape, weights.shape[0]
    channels, height = x.shape[1] // groups, 0
    for i in range(down.shape[0]):
        height = max(height, down[i, 0])
    for begin in range(0, x.shape[0], images):
        end = min(begin + images, x.shape[0])
        for group in range(groups):
            lay_out(x[begin:end], group * channels, channels, rows, lead, stride, apart, pitch)
            for row in range(0, height, tile_rows):
                for i in range(down.shape[0]):
                    for j in range(classes):
                        first, stop = ends[i * classes + j], ends[i * classes + j + 1]
                        taps = weights[group, even * first : even * stop].reshape(even, stop - first)
                        slide(rows.reshape(-1), row * pitch, shifts[first:stop], taps, tile[j])
                    last = min(row + tile_rows, down[i, 0])
                    _write(tile, apart, pitch, row, last, down.shape[0], down[i, 1], across, bias, group, groups,
                           out[begin:end])  # fmt: skip


@inner()
def _write(
    tile: Any, apart: int, pitch: int, row: int, last: int, step: int, first: int, across: Any, bias: Any,
    group: int, groups: int, out: Any,
) -> None:  # fmt: skip
    """Write rows row, ..., last - 1 of the tile into the images, its classes of columns alternately."""
    flat, sums, (images, filters, h, w) = out.reshape(-1), tile.reshape(-1), out.shape
    own, beyond = filters // groups, tile.shape[1] * tile.shape[2]
    for i in range(images):  # image by image, filter by filter: in the order of memory
        for k in range(own):
            f, source = group * own + k, k * tile.shape[2] + i * apart
            target = ((i * filters + f) * h + row * step + first) * w
            for _ in range(row, last):
                if across.shape[0] == 1:
                    copy_row(sums, source, flat, target, w, bias[f])
                elif across.shape[0] == 2:
                    even, odd = source + across[0, 1] * beyond, source + across[1, 1] * beyond
                    merge_rows(sums, even, odd, flat, target, w, bias[f])
                else:
                    for j in range(across.shape[0]):
                        s, t = np.uint64(source + j * beyond), np.uint64(target + across[j, 1])
                        for q in range(across[j, 0]):
                            flat[t + np.uint64(q * across.shape[0])] = sums[s + np.uint64(q)] + bias[f]
                source, target = source + pitch, target + step * w


@compiled()
def _correlate(
    x: Any, g: Any, begin: int, end: int, share: int, rows: Any, tile: Any, shifts: Any, gradient: Any,
    images: int, lead: Any, stride: Any, apart: int, pitch: int, tile_rows: int,
) -> None:  # fmt: skip
    """Turns begin, ..., end - 1; each is a section of `share` images, a group of channels and four filters."""
    flat, places, zero, (filters, oh, ow) = g.reshape(-1), tile.reshape(-1), g.dtype.type(0), g.shape[1:]
    _, groups, even, _ = gradient.shape
    own, channels, fours = filters // groups, x.shape[1] // groups, -(-even // 4)
    for section in range(begin // (groups * fours), -(-end // (groups * fours))):
        low, high = max(begin - section * groups * fours, 0), min(end - section * groups * fours, groups * fours)
        beyond = min((section + 1) * share, x.shape[0])
        for image in range(section * share, beyond, images):
            count = min(images, beyond - image)
            for group in range(low // fours, -(-high // fours)):
                lay_out(x[image : image + count], group * channels, channels, rows, lead, stride, apart, pitch)
                for row in range(0, oh, tile_rows):
                    last = min(row + tile_rows, oh)
                    if count < images or last - row < tile_rows:
                        tile[:] = 0
                    for f in range(4 * max(low - group * fours, 0), min(4 * (high - group * fours), own), 4):
                        for k in range(min(4, own - f)):
                            for i in range(count):
                                source = (((image + i) * filters + group * own + f + k) * oh + row) * ow
                                target = k * tile.shape[1] + i * apart
                                for _ in range(row, last):
                                    copy_row(flat, source, places, target, ow, zero)
                                    source, target = source + ow, target + pitch
                        stop = min(f + 4, even)
                        correlate(
                            rows.reshape(-1), row * pitch, shifts, tile[: stop - f], gradient[section, group, f:stop]
                        )


@inner()
def lay_out(x: Any, first: int, channels: int, rows: Any, lead: Any, stride: Any, apart: int, pitch: int) -> None:
    """Write channels first : first + channels of the images into the planes, one plane for each class of pixels."""
    (n, all_channels, h, w), flat, places, zero = x.shape, x.reshape(-1), rows.reshape(-1), x.dtype.type(0)
    size = rows.shape[1]
    for c in range(channels):
        for y in range(h):
            i, down = (y + lead[0]) % stride[0], (y + lead[0]) // stride[0]
            plane = (c * stride[0] + i) * stride[1] * size + down * pitch
            for image in range(n):  # innermost: an order that follows memory was slower
                source, target = ((image * all_channels + first + c) * h + y) * w, plane + image * apart
                if stride[1] == 1:
                    copy_row(flat, source, places, target + lead[1], w, zero)
                elif stride[1] == 2:
                    even, odd = lead[1] % 2, 1 - lead[1] % 2  # the classes of the first two pixels
                    left, right = target + even * size + lead[1] // 2, target + odd * size + (lead[1] + 1) // 2
                    split_row(flat, source, places, left, right, w)
                else:
                    for j in range(stride[1]):
                        begin = max(-((j - lead[1]) // stride[1]), 0)  # the first position that holds a pixel
                        s = np.uint64(source + begin * stride[1] + j - lead[1])
                        t, step = np.uint64(target + j * size + begin), np.uint64(stride[1])
                        for k in range((w - (begin * stride[1] + j - lead[1]) + stride[1] - 1) // stride[1]):
                            places[t + np.uint64(k)] = flat[s + np.uint64(k) * step]
