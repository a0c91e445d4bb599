"""Convolutions and batch norms that are divided by channels or filters, and by pixels as well."""

from __future__ import annotations

from minidl.parallel.spatial.division import ON_TILES, synchronized
from minidl.parallel.spatial.layers import SpatialConv2d
from minidl.parallel.tensor.convolution import ColumnConv2d, GridConv2d, RowConv2d, ShardedBatchNorm


class SpatialColumnConv2d(SpatialConv2d, ColumnConv2d):
    """A `ColumnConv2d` of tiles: a rank computes its tile of the channels that its filters give."""


class SpatialRowConv2d(SpatialConv2d, RowConv2d):
    """A `RowConv2d` of tiles: the ranks with the same tile add up what they compute from their channels of it."""


class SpatialGridConv2d(SpatialConv2d, GridConv2d):
    """A `GridConv2d` of tiles: a rank has its tile of its share of the channels, before the layer and behind it."""


SHARDED_ON_TILES = {
    **ON_TILES,
    ColumnConv2d: SpatialColumnConv2d,
    GridConv2d: SpatialGridConv2d,
    RowConv2d: SpatialRowConv2d,
    ShardedBatchNorm: synchronized,
}
"""What replaces a layer of tiles, after `split_layers`."""
