"""Convolution, pooling and dropout over images that a grid of ranks divides: each rank computes its tile of the output.

Weights are whole on every rank. Their gradients are a rank's share, to be summed over the ranks of the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from minidl import kernels, random
from minidl.functional.bind import operand
from minidl.functional.dropout import dropping, kept_elements
from minidl.functional.one_type import in_one_type
from minidl.functional.pairs import hashable
from minidl.functional.pooling import adaptive_both, max_over, mean_over, sliding_both, with_divisor
from minidl.kernels import Array
from minidl.kernels.reference.windows import Windows
from minidl.nn import (
    AdaptiveAvgPool2d,
    AdaptiveMaxPool2d,
    AvgPool2d,
    Conv2d,
    Dropout,
    MaxPool2d,
    Module,
)
from minidl.parallel.spatial.halo import Exchange, Frame, begin_return, own_tile, with_halo
from minidl.parallel.spatial.tiles import Reach, Sliding, Span, Tile, reach_of
from minidl.tensor import Tensor, record

Size = tuple[int, int]
Pooling = MaxPool2d | AvgPool2d | AdaptiveMaxPool2d | AdaptiveAvgPool2d


class SpatialConv2d(Conv2d):
    """A convolution of images that a grid of ranks divides; the halo travels while the interior is computed.

    Rows travel during the first half of the interior, columns during the second, if there are both.

    Parameters
        layer  the whole layer, whose weight and bias are kept
        tile   this rank's place in the grid
        size   height and width of the whole images that the layer reads

    Shapes: x (n, in_channels, h / rows, w / columns) -> (n, out_channels, oh / rows, ow / columns), where the first
    ranks have a pixel more if the grid does not divide the image.
    Messages: rows to and from the neighbours above and below, then columns to and from those left and right, in
    forward; their gradients in backward, while that of the weight is computed: of the rows if there are any, else of
    the columns. A kernel of one pixel with stride 1 sends nothing.

    Raises
        ValueError   a kernel is wider than a slab, an image has fewer pixels than the grid has ranks, or x is another
                     tile than this rank's

    References
        Dryden et al. (arXiv:1903.06681), section 4.
    """

    def __init__(self, layer: Conv2d, tile: Tile, size: Size) -> None:
        vars(self).update(vars(layer))
        self.tile, self.size = tile, size
        self._sliding = sliding(layer, size)
        self._frame = Frame(tile, _reaches("SpatialConv2d", tile, size, self._sliding))

    def convolve(self, x: Any, weight: Tensor, bias: Tensor | None) -> Tensor:
        x, weight, bias = in_one_type("conv2d", operand(x), weight, bias)
        check_tile("SpatialConv2d", x.shape, self.tile, self.size)
        frame, w, b = self._frame, weight.data, None if bias is None else bias.data
        algorithm = () if self.algorithm in (None, "auto") else (self.algorithm,)
        numbers = self.stride, (0, 0), self.dilation, self.groups, *algorithm
        whole = frame.around(x.data, frame.own)
        area = whole[frame.area]  # a view, which the exchanges fill
        shape = [reach.outputs.stop - reach.outputs.start for reach in frame.reaches]
        out = kernels.array_module(w).empty((len(area), len(w), *shape), dtype=w.dtype)

        def compute(rows: Span, columns: Span) -> None:
            if rows.start < rows.stop and columns.start < columns.stop:
                place = [
                    slice(part.start * each.stride, (part.stop - 1) * each.stride + each.reach)
                    for part, each in zip((rows, columns), self._sliding, strict=True)
                ]
                pixels = kernels.current().conv2d(area[(..., *place)], w, b, *numbers)
                out[..., slice(*rows), slice(*columns)] = pixels

        rows, columns = (interior(*each) for each in zip(frame.reaches, self._sliding, strict=True))
        has_rows, has_columns = map(bool, frame.messages)
        exchange = Exchange(frame, whole, 0 if has_rows else 1)
        half = (rows.start + rows.stop) // 2 if has_rows and has_columns else rows.stop
        compute(Span(rows.start, half), columns)
        if has_rows:
            exchange.finish()
            exchange = Exchange(frame, whole, 1)
            compute(Span(0, rows.start), columns)
            compute(Span(half, shape[0]), columns)
        exchange.finish()
        compute(Span(0, shape[0]), Span(0, columns.start))
        compute(Span(0, shape[0]), Span(columns.stop, shape[1]))

        own, halo, padded = x.data, frame.halo(whole), area.shape  # not the frame: what gave x may keep it, too

        def separable_vjp(g: Array, needs: Any) -> tuple[Array, ...]:
            kernel, of_x, of_weight = kernels.current(), False, False
            if needs[0]:
                gradient = frame.around(kernel.conv2d_backward_input(g, w, padded, *numbers), frame.area)
                last = begin_return(frame, gradient)
            if needs[1]:
                again = frame.around(own, frame.own, halo)[frame.area]
                of_weight = kernel.conv2d_backward_weight(g, again, w.shape, *numbers)
            of_bias = (needs[2] and kernel.sum_channels(g),) if bias is not None else ()
            if needs[0]:
                last.finish()
                of_x = own_tile(frame, gradient)
            return (of_x, of_weight, *of_bias)

        return record(out, (x, weight) if bias is None else (x, weight, bias), separable_vjp, saved=(0, 1))


class SpatialPool2d(Module):
    """Max or average pooling of images that a grid of ranks divides.

    Parameters
        layer  a MaxPool2d, AvgPool2d, AdaptiveMaxPool2d or AdaptiveAvgPool2d
        tile   this rank's place in the grid
        size   height and width of the whole images that the layer reads

    Messages: the pixels of neighbours that this rank's windows read, as for SpatialConv2d; none where the grid cuts
    between windows, as 2 x 2 windows of slabs of even size.

    Raises
        ValueError   as SpatialConv2d; also for return_indices
    """

    def __init__(self, layer: Pooling, tile: Tile, size: Size) -> None:
        if getattr(layer, "return_indices", False):
            raise ValueError("SpatialPool2d: no rank knows the positions in the whole image: leave out return_indices")
        self.tile, self.size, self._kind = tile, size, type(layer).__name__
        windows = pooled(layer, size)
        reaches = _reaches(self._kind, tile, size, windows)
        self._frame = Frame(tile, reaches)
        rows, columns = (each.share(*reach.outputs, reach.first) for each, reach in zip(windows, reaches, strict=True))
        self._windows = rows, columns
        self._pool = max_over if isinstance(layer, (MaxPool2d, AdaptiveMaxPool2d)) else mean_over

    def forward(self, x: Any) -> Tensor:
        x = operand(x)
        check_tile(self._kind, x.shape, self.tile, self.size)
        return self._pool(with_halo(x, self._frame), self._windows)


class SpatialDropout(Dropout):
    """Dropout of images that a grid of ranks divides: every rank applies its tile of the mask that one node draws."""

    def __init__(self, layer: Dropout, tile: Tile, size: Size) -> None:
        super().__init__(layer.p)
        self.tile, self.size = tile, size

    def forward(self, x: Any) -> Tensor:
        x = operand(x)
        if not self.training or self.p == 0:
            return x
        check_tile("SpatialDropout", x.shape, self.tile, self.size)
        kept = self.kept(x.data, (*x.shape[:2], *self.size))
        drop = dropping(kept.copy(), self.p, x.dtype)  # a view would keep the whole mask until backward
        return record(drop(x.data), (x,), lambda g, needs: (drop(g),))

    def kept(self, x: Array, whole: tuple[int, ...]) -> Array:
        """This rank's tile of the mask of images of that shape."""
        return cast(Array, self.tile.cut(kept_elements(x, whole, self.p, random.layer_generator(self))))


def interior(reach: Reach, windows: Sliding) -> Span:
    """Outputs, counted from this rank's first, whose windows read its own pixels and padding only: the longest run."""
    taps = windows.taps(reach.outputs)
    own = (taps >= reach.own.start) & (taps < reach.own.stop)
    inside = np.flatnonzero((own | (taps < 0) | (taps >= windows.size)).all(axis=1))
    # Windows that reach from one side's padding to the other's interrupt it
    longest = max(np.split(inside, np.flatnonzero(np.diff(inside) > 1) + 1), key=len)
    return Span(int(longest[0]), int(longest[-1]) + 1) if longest.size else Span(0, 0)


def check_tile(layer: str, shape: tuple[int, ...], tile: Tile, size: Size) -> None:
    """Raise ValueError unless images of that shape are this rank's tiles of images of that size."""
    rows, columns = tile.own(size)
    expected = rows.stop - rows.start, columns.stop - columns.start
    if len(shape) != 4 or shape[2:] != expected:
        raise ValueError(
            f"{layer}: rank {tile.place} of a grid of {tile.grid} has tiles (n, c, {expected[0]}, {expected[1]}) of "
            f"images (n, c, {size[0]}, {size[1]}), got {shape}"
        )


def sliding(layer: Conv2d, size: Size) -> tuple[Sliding, Sliding]:
    """The windows of a convolution of images of that size."""

    def along(d: int) -> Sliding:
        kernel, stride, dilation = layer.kernel_size[d], layer.stride[d], layer.dilation[d]
        before = after = 0 if isinstance(layer.padding, str) else layer.padding[d]
        if layer.padding == "same":
            before, after = dilation * (kernel - 1) // 2, dilation * (kernel - 1) - dilation * (kernel - 1) // 2
        number = (size[d] + before + after - dilation * (kernel - 1) - 1) // stride + 1
        return Sliding(size[d], number, kernel, stride, before, dilation)

    return along(0), along(1)


def pooled(layer: Pooling, size: Size) -> tuple[Windows, Windows]:
    """The windows of a pooling of images of that size."""
    shape = (1, 1, *size)
    match layer:
        case MaxPool2d():
            numbers = layer.kernel_size, layer.stride, layer.padding, layer.dilation, layer.ceil_mode
            return sliding_both("MaxPool2d", shape, *map(hashable, numbers))
        case AvgPool2d():
            sizes = map(hashable, (layer.kernel_size, layer.stride, layer.padding))
            both = sliding_both("AvgPool2d", shape, *sizes, 1, layer.ceil_mode, layer.count_include_pad)
            return with_divisor(both, layer.divisor_override)
        case _:
            return adaptive_both(type(layer).__name__, shape, layer.output_size)


def _reaches(layer: str, tile: Tile, size: Size, windows: Sequence[Sliding | Windows]) -> tuple[Reach, Reach]:
    rows, columns = (reach_of(layer, d, size[d], windows[d], tile.grid[d], tile.place[d]) for d in (0, 1))
    return rows, columns
