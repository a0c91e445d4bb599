"""Spatial parallelism: several ranks divide the pixels of every image, by rows or by tiles.

From top to bottom; a file imports only from lines below its own:

    division    which layers of a model work on tiles, and the model that does
    samples     a data set of which a rank reads its tile of every sample
    layers      convolution, pooling and dropout of tiles
    halo        the exchange of the rows and columns around a tile, with its gradient
    tiles       who has which pixels, and who needs which
    formulas    how many numbers neighbours exchange
"""

from minidl.parallel.spatial.division import Division, divide, division_of, tiled_parameters
from minidl.parallel.spatial.formulas import halo_rows, halo_words
from minidl.parallel.spatial.halo import gathered
from minidl.parallel.spatial.layers import SpatialConv2d, SpatialDropout, SpatialPool2d
from minidl.parallel.spatial.tiles import Tile

__all__ = [
    "Division",
    "SpatialConv2d",
    "SpatialDropout",
    "SpatialPool2d",
    "Tile",
    "divide",
    "division_of",
    "gathered",
    "halo_rows",
    "halo_words",
    "tiled_parameters",
]
