"""Spatial parallelism: ranks that divide the positions of an image.

halos    the rows that a rank needs of its neighbours
"""

from minidl.parallel.spatial.halos import halo_rows, halo_words

__all__ = ["halo_rows", "halo_words"]
