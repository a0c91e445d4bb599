"""Convolutions, batch norms and dropouts that are divided by channels or filters, and by pixels as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidl.kernels import Array
from minidl.nn import Module
from minidl.parallel.spatial.division import ON_TILES, synchronized
from minidl.parallel.spatial.layers import Size, SpatialConv2d, SpatialDropout
from minidl.parallel.spatial.tiles import Tile
from minidl.parallel.tensor.collectives import own_slice
from minidl.parallel.tensor.convolution import ColumnConv2d, GridConv2d, RowConv2d, ShardedBatchNorm
from minidl.parallel.tensor.dropout import ShardedDropout


class SpatialColumnConv2d(SpatialConv2d, ColumnConv2d):
    """A `ColumnConv2d` of tiles: a rank computes its tile of the channels that its filters give."""


class SpatialRowConv2d(SpatialConv2d, RowConv2d):
    """A `RowConv2d` of tiles: the ranks with the same tile add up what they compute from their channels of it."""


class SpatialGridConv2d(SpatialConv2d, GridConv2d):
    """A `GridConv2d` of tiles: a rank has its tile of its share of the channels, before the layer and behind it."""


class SpatialShardedDropout(SpatialDropout):
    """A `ShardedDropout` of the channels of tiles: a rank applies its share of the mask that one node would draw."""

    def __init__(self, layer: ShardedDropout, tile: Tile, size: Size) -> None:
        if layer.axis % 4 != 1:
            raise ValueError(f"SpatialShardedDropout: a dropout of channels, axis=1, expected, got axis={layer.axis}")
        super().__init__(layer, tile, size)
        self.comm = layer.comm

    def kept(self, x: Array, whole: tuple[int, ...]) -> Array:
        n, channels, *size = whole
        return own_slice(super().kept(x, (n, channels * self.comm.size, *size)), self.comm, 1)


SHARDED_ON_TILES: dict[type[Module], Callable[[Any, Tile, Size], Module]] = {
    **ON_TILES,
    ColumnConv2d: SpatialColumnConv2d,
    GridConv2d: SpatialGridConv2d,
    RowConv2d: SpatialRowConv2d,
    ShardedBatchNorm: synchronized,
    ShardedDropout: SpatialShardedDropout,
}
"""What replaces a layer of tiles, after `split_layers`."""
