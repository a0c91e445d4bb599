"""A data set of which a rank reads its tile of every sample, so that no rank needs a whole one."""

from __future__ import annotations

from typing import Any

from minidl.data import Dataset
from minidl.parallel.spatial.tiles import Tile


class Tiles(Dataset):
    """The same samples and targets, cut to this rank's tile. Samples that are made one by one are cut when read.

    Parameters
        whole   samples (c, h, w) with their targets
        tile    this rank's place in the grid
    """

    def __init__(self, whole: Dataset, tile: Tile) -> None:
        self._whole, self._tile = whole, tile

    def __len__(self) -> int:
        return len(self._whole)

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        x, y = self._whole[index]
        return self._tile.cut(x), y


def tiles_of(dataset: Dataset, tile: Tile) -> Dataset:
    """The data set, cut to this rank's tile; of a Dataset's arrays, in memory or in a file, no more is read."""
    if isinstance(dataset, Dataset) and type(dataset).__getitem__ is Dataset.__getitem__:
        return Dataset(tile.cut(dataset.x), dataset.y, dataset.name, dataset.classes)
    return Tiles(dataset, tile)
