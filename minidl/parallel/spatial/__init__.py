"""Spatial parallelism: every rank holds a slice of an image's positions.

halos    the rows that a rank needs from its neighbours
"""

from minidl.parallel.spatial.halos import halo_rows, halo_words

__all__ = ["halo_rows", "halo_words"]
