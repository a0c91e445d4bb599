"""The memory layout of padded images: every tap of a filter reads at one constant shift.

The images of one channel are written row after row, one below the other, into one plane. Between two rows lie only as
many zeros as a window can overhang: they are the right margin of one row and the left margin of the next. With a
stride of s, the s x s classes of pixels (by row and column modulo s) get a plane each, in which windows are neighbours.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from minidl.kernels import Array

Pair = tuple[int, int]

VECTORS = 96  # numbers of three vectors, as sliding.py reads them
TILE = 2400  # positions at a time: four filters' sums or gradients (38 KB) stay in the first cache


class Layout(NamedTuple):
    """The layout of the images and the positions of the sums."""

    taps: int  # the taps of a filter
    shifts: Array  # from a position to the number that each tap reads there; the last one repeated to a multiple of 3
    planes: int
    plane_size: int
    tile_size: int  # the positions of one tile, a multiple of 96: whole vectors, three at a time
    size: Pair  # of the result, height and width
    # what the compiled loops take: images laid out at a time, zeros before the first pixel, stride, rows an image,
    # numbers a row, rows a tile; then of the result: the numbers in each direction, the steps between them, the first
    numbers: tuple[int, Pair, Pair, int, int, int, Pair, Pair, Pair]


@lru_cache(maxsize=256)
def layout_forward(shape: tuple[int, ...], window: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Layout:
    """x (n, c, h, w) of this shape, to be slid over by filters (c, *window)."""
    n, channels = shape[:2]
    axes = [_Axis(shape[2 + d], window[d], stride[d], padding[d], dilation[d]) for d in (0, 1)]
    height, pitch = (axis.length_forward() for axis in axes)
    k, l = np.arange(window[0])[:, None] * dilation[0], np.arange(window[1]) * dilation[1]  # noqa: E741
    planes = (np.arange(channels)[:, None, None] * stride[0] + k % stride[0]) * stride[1] + l % stride[1]
    inside = k // stride[0] * pitch + l // stride[1]
    out = (axes[0].out, axes[1].out)
    return _layout(
        n, planes, inside, channels * stride[0] * stride[1], padding, stride, height, pitch, out, (1, 1), (0, 0)
    )


@lru_cache(maxsize=256)
def layout_backward(
    g_shape: tuple[int, ...],
    shape: tuple[int, ...],
    window: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    pixel: Pair,
) -> Layout:
    """The gradient g of this shape, to be slid over for the pixels of one class (row and column modulo the stride)."""
    n, filters = g_shape[:2]
    axes = [_Axis(shape[2 + d], window[d], stride[d], padding[d], dilation[d]) for d in (0, 1)]
    lead = (axes[0].lead(), axes[1].lead())
    height, pitch = (axis.length_backward() for axis in axes)
    first = [axes[d].first(pixel[d]) for d in (0, 1)]
    count = tuple(axes[d].end(pixel[d]) - first[d] for d in (0, 1))
    k, l = (axes[d].steps(pixel[d]) for d in (0, 1))  # noqa: E741
    inside = (lead[0] + first[0] - k[:, None]) * pitch + lead[1] + first[1] - l
    planes = np.broadcast_to(np.arange(filters)[:, None, None], (filters, *inside.shape))
    begin = tuple(first[d] * stride[d] + pixel[d] - padding[d] for d in (0, 1))
    return _layout(n, planes, inside, filters, lead, (1, 1), height, pitch, count, stride, begin)


def _layout(
    n: int,
    planes_of_taps: Array,
    inside: Array,
    planes: int,
    lead: Pair,
    stride: Pair,
    height: int,
    pitch: int,
    count: Any,
    step: Pair,
    first: Any,
) -> Layout:
    groups = -(-n // max(1, TILE // (height * pitch)))
    group = -(-n // groups)
    rows = (group - 1) * height + count[0]
    tiles = max(1, -(-rows * pitch // TILE))
    tile_rows = max(1, -(-rows // tiles))
    tile_size = -(-tile_rows * pitch // VECTORS) * VECTORS
    reach = int(inside.max()) if inside.size else 0
    plane_size = max(group * height, tiles * tile_rows + height) * pitch + reach + VECTORS
    shifts = (planes_of_taps * plane_size + inside).reshape(-1)
    padded = np.pad(shifts, (0, -shifts.size % 3), mode="edge") if shifts.size else shifts
    numbers = (group, lead, stride, height, pitch, tile_rows, count, step, first)
    return Layout(shifts.size, padded, planes, plane_size, tile_size, count, numbers)


@lru_cache(maxsize=256)
def taps_of_class(window: int, stride: int, dilation: int, a: int) -> slice:
    """Return the window's taps that read pixels of class a: those at a distance s k + a from the first one."""
    taps = (tap for tap in range(window) if tap * dilation % stride == a)
    return slice(next(taps, window), window, stride // gcd(stride, dilation))


class _Axis(NamedTuple):
    """One direction of a convolution. Padded pixel s q + a is number q of class a; a tap at s k + a reads class a."""

    size: int
    window: int
    stride: int
    padding: int
    dilation: int

    @property
    def reach(self) -> int:
        """From the first to the last pixel of a window, both included."""
        return self.dilation * (self.window - 1) + 1

    @property
    def out(self) -> int:
        return (self.size + 2 * self.padding - self.reach) // self.stride + 1

    def first(self, a: int) -> int:
        """The first number of class a that is a pixel, not padding."""
        return max(-((a - self.padding) // self.stride), 0)

    def end(self, a: int) -> int:
        """One more than the last."""
        return max((self.padding + self.size - 1 - a) // self.stride + 1, self.first(a))

    def last(self, a: int) -> int:
        """At least the largest k of the taps that read class a, and at least -1."""
        return (self.reach - 1 - a) // self.stride

    def steps(self, a: int) -> Array:
        """The k of the taps that read class a."""
        taps = np.arange(self.window)[taps_of_class(self.window, self.stride, self.dilation, a)]
        return (taps * self.dilation - a) // self.stride

    def lead(self) -> int:
        """Return the number of zeros before the gradient, which mirrored taps read."""
        return max(0, *(self.last(a) - self.first(a) for a in range(self.stride)))

    def length_forward(self) -> int:
        """Numbers from one row to the next: what overhangs this row must fall on the zeros before the next one."""
        classes = range(self.stride)
        overhang = (self.out + self.last(a) - self.first(a) for a in classes)
        return max(self.out, *overhang, *(self.end(a) for a in classes))

    def length_backward(self) -> int:
        return max(self.out + self.lead(), *(self.end(a) for a in range(self.stride)))
