"""The memory layout of padded images: every tap of a filter reads at one constant shift.

The images of one channel are written side by side into one plane, which is stored row after row. Between two images
lie only as many zeros as a window can overhang: they are the right margin of one image and the left margin of the next.
With a stride of s, the s x s classes of pixels (by row and column modulo s) get a plane each, in which windows are
neighbours.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import NamedTuple

import numpy as np

from minidl.kernels import Array

Pair = tuple[int, int]

VECTORS = 96  # numbers of three vectors, as sliding.py reads them
TILE = 2400  # positions at a time: four filters' sums or gradients (38 KB) stay in the first cache
NEAR = 19_200
"""Numbers of all planes together that sliding reads for a tile, so that a row is still in the first cache when the taps
of the next rows read it. Measured on one core with AVX-512, window 3x3: with 300 positions instead of 2400 the sums of
64 -> 64 channels of 8x8 take 0.84 times as long; those of 16 -> 16 channels of 32x32 need no smaller tile.
"""


class Layout(NamedTuple):
    """The layout of the images and the positions of the sums."""

    taps: int  # the taps of a filter
    shifts: Array  # from a position to the number that each tap reads there; the last one repeated to a multiple of 3
    ends: Array  # the taps of class k of the result's pixels are ends[k], ..., ends[k + 1] - 1
    planes: int
    plane_size: int
    tile_size: int  # the positions of one tile, a multiple of 96: whole vectors, three at a time
    size: Pair  # of the result, height and width
    # what the compiled loops take: images laid out at a time, zeros before the first pixel, stride, numbers from one
    # image to the next, numbers of a row of the plane, rows of a tile
    numbers: tuple[int, Pair, Pair, int, int, int]
    down: Array  # (number of rows, first row) of the result for each class of rows: the classes alternate
    across: Array  # the same for columns


@lru_cache(maxsize=256)
def layout_forward(
    shape: tuple[int, ...], window: Pair, stride: Pair, padding: Pair, dilation: Pair, is_near: bool = False
) -> Layout:
    """x (n, c, h, w) of this shape, to be slid over by filters (c, *window); is_near: in tiles of `NEAR` numbers."""
    n, channels = shape[:2]
    axes = [_Axis(shape[2 + d], window[d], stride[d], padding[d], dilation[d]) for d in (0, 1)]
    k, l = np.arange(window[0])[:, None] * dilation[0], np.arange(window[1]) * dilation[1]  # noqa: E741
    planes = (np.arange(channels)[:, None, None] * stride[0] + k % stride[0]) * stride[1] + l % stride[1]
    taps = [(planes, k // stride[0], l // stride[1])]
    height, apart = (axis.length_forward() for axis in axes)
    down, across = (np.array([(axis.out, 0)]) for axis in axes)
    classes = channels * stride[0] * stride[1]
    tile = max(VECTORS, NEAR // classes) if is_near else TILE
    return _layout(n, taps, classes, padding, stride, height, apart, down, across, tile)


@lru_cache(maxsize=256)
def layout_backward(
    g_shape: tuple[int, ...], shape: tuple[int, ...], window: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> Layout:
    """The gradient g of this shape, to be slid over for each class of pixels (row and column modulo the stride)."""
    n, filters = g_shape[:2]
    axes = [_Axis(shape[2 + d], window[d], stride[d], padding[d], dilation[d]) for d in (0, 1)]
    lead = (axes[0].lead(), axes[1].lead())
    k, l = ([lead[d] + axes[d].first(a) - axes[d].steps(a) for a in range(stride[d])] for d in (0, 1))  # noqa: E741
    taps = [(np.arange(filters)[:, None, None], i[:, None], j) for i in k for j in l]
    height, apart = (axis.length_backward() for axis in axes)
    down, across = (np.array([axes[d].pixels(a) for a in range(stride[d])]) for d in (0, 1))
    return _layout(n, taps, filters, lead, (1, 1), height, apart, down, across, max(VECTORS, NEAR // filters))


def _layout(
    n: int,
    taps: list[tuple[Array, Array, Array]],  # of each class of the result's pixels: their planes, rows and columns
    planes: int,
    lead: Pair,
    stride: Pair,
    height: int,
    apart: int,
    down: Array,
    across: Array,
    tile: int,
) -> Layout:
    tile, rows = min(tile, TILE // len(across)), int(down[:, 0].max())  # a tile for each class of columns
    groups = -(-n // max(1, tile // (rows * apart)))
    images = -(-n // groups)
    pitch = images * apart
    tiles = -(-rows * pitch // tile)
    tile_rows = max(1, -(-rows // tiles))
    tile_size = -(-tile_rows * pitch // VECTORS) * VECTORS
    inside = [row * pitch + column for _, row, column in taps]
    reach = max(int(shifts.max()) if shifts.size else 0 for shifts in inside)
    plane_size = max(height, tiles * tile_rows) * pitch + reach + VECTORS
    parts = [(plane * plane_size + shifts).reshape(-1) for (plane, _, _), shifts in zip(taps, inside, strict=True)]
    ends = np.cumsum([0, *(part.size for part in parts)])
    shifts = np.concatenate(parts)
    padded = np.pad(shifts, (0, -shifts.size % 3), mode="edge") if shifts.size else shifts
    numbers = (images, lead, stride, apart, pitch, tile_rows)
    size = (int(down[:, 0].sum()), int(across[:, 0].sum()))
    return Layout(shifts.size, padded, ends, planes, plane_size, tile_size, size, numbers, down, across)


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

    def pixels(self, a: int) -> Pair:
        """Return how many pixels class a has, and the first of them; the next ones follow at a distance of s."""
        return self.end(a) - self.first(a), self.first(a) * self.stride + a - self.padding

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
        """From one image to the next: what overhangs this one must fall on the zeros before the next one."""
        classes = range(self.stride)
        overhang = (self.out + self.last(a) - self.first(a) for a in classes)
        return max(self.out, *overhang, *(self.end(a) for a in classes))

    def length_backward(self) -> int:
        return max(self.out + self.lead(), *(self.end(a) for a in range(self.stride)))
