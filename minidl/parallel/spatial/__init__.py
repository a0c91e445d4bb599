"""Spatial parallelism: several ranks divide the pixels of every image, by rows or by tiles.

From top to bottom; a file imports only from lines below its own:

    layers      convolution, pooling and dropout of tiles
    halo        the exchange of the rows and columns around a tile, with its gradient
    tiles       who has which pixels, and who needs which
    formulas    how many numbers neighbours exchange
"""

from minidl.parallel.spatial.formulas import halo_rows, halo_words
from minidl.parallel.spatial.halo import gathered
from minidl.parallel.spatial.layers import SpatialConv2d, SpatialDropout, SpatialPool2d
from minidl.parallel.spatial.tiles import Tile

__all__ = ["SpatialConv2d", "SpatialDropout", "SpatialPool2d", "Tile", "gathered", "halo_rows", "halo_words"]
