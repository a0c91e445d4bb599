"""Shard, GridShard, FlatShard: what a rank holds of a parameter: of one dimension, of two, or of all elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from minidl.arguments import whole_number
from minidl.kernels import Array, array_module


@dataclass(frozen=True)
class Shard:
    """Share `index` of `count` equal shares of an array along one dimension.

    Parameters
        axis      axis of the mesh whose ranks hold the shards, such as "tp"
        index     this rank's coordinate on that axis, 0 <= index < count
        count     number of shards
        dim       dimension that is divided
        blocks    number of equal blocks that the dimension consists of; each is divided by itself. Query, key and
                  value in one matrix are 3 blocks: every rank has a share of each

    Raises
        ValueError    blocks * count does not divide the dimension's size; an index that is not less than count

    >>> import numpy as np
    >>> Shard("tp", index=1, count=2).cut(np.arange(6))
    array([3, 4, 5])
    >>> Shard("tp", index=1, count=2, blocks=3).cut(np.arange(6))
    array([1, 3, 5])
    """

    axis: str
    index: int
    count: int
    dim: int = 0
    blocks: int = 1

    def __post_init__(self) -> None:
        whole_number("Shard: count", self.count, at_least=1)
        whole_number("Shard: blocks", self.blocks, at_least=1)
        whole_number("Shard: dim", self.dim, at_least=0)
        whole_number("Shard: index", self.index, at_least=0)
        if self.index >= self.count:
            raise ValueError(f"Shard: index must be less than count={self.count}, got {self.index}")

    def cut(self, whole: Array) -> Array:
        """Return a copy of this rank's shard of the whole array."""
        self.check(whole.shape)
        n = whole.shape[self.dim]
        before, after = whole.shape[: self.dim], whole.shape[self.dim + 1 :]
        cells = whole.reshape(*before, self.blocks, self.count, n // (self.blocks * self.count), *after)
        shard = cells[(slice(None),) * (self.dim + 1) + (self.index,)]
        return shard.reshape(*before, n // self.count, *after).copy()

    def taken_from(self, array: Array, shape: tuple[int, ...]) -> Array:
        """Return this rank's shard of an array for the whole parameter; any other array as it is.

        shape: that of the parameter's shard.

        >>> import numpy as np
        >>> half = Shard("tp", index=1, count=2)
        >>> half.taken_from(np.arange(6), (3,)), half.taken_from(np.arange(3), (3,))
        (array([3, 4, 5]), array([0, 1, 2]))
        """
        return self.cut(array) if array.shape == self.whole_shape(shape) else array

    def whole_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the whole array, from that of the shard."""
        return (*shape[: self.dim], shape[self.dim] * self.count, *shape[self.dim + 1 :])

    def own_shape(self, whole: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a shard, from that of the whole array."""
        return (*whole[: self.dim], whole[self.dim] // self.count, *whole[self.dim + 1 :])

    def join(self, shards: Sequence[Array]) -> Array:
        """Return the whole array of the shards 0, 1, ..., count - 1.

        Raises ValueError for another number of shards, and for shards that differ in shape.

        >>> import numpy as np
        >>> cuts = [Shard("tp", index, 2, blocks=3) for index in range(2)]
        >>> cuts[0].join([cut.cut(np.arange(6)) for cut in cuts])
        array([0, 1, 2, 3, 4, 5])
        """
        shapes = [shard.shape for shard in shards]
        if len(shapes) != self.count or len(set(shapes)) > 1:
            raise ValueError(f"Shard: {self.count} shards of one shape expected, got shards of shapes {shapes}")
        self._check_dimension(shapes[0], self.blocks)
        m = shapes[0][self.dim]
        before, after = shapes[0][: self.dim], shapes[0][self.dim + 1 :]
        cells = [shard.reshape(*before, self.blocks, m // self.blocks, *after) for shard in shards]
        whole: Any = array_module(shards[0]).stack(cells, axis=self.dim + 1)
        return whole.reshape(*before, m * self.count, *after)

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise ValueError unless a whole array of this shape can be divided."""
        self._check_dimension(shape, self.blocks * self.count)

    def _check_dimension(self, shape: tuple[int, ...], divisor: int) -> None:
        if self.dim >= len(shape):
            raise ValueError(f"Shard: an array with a dimension {self.dim} expected, got shape {shape}")
        if shape[self.dim] % divisor:
            raise ValueError(
                f"Shard: dimension {self.dim} of shape {shape} must be a multiple of {divisor} "
                f"(blocks={self.blocks}, count={self.count}): make it {-(-shape[self.dim] // divisor) * divisor} wide, "
                "or divide it by another number of ranks"
            )


@dataclass(frozen=True)
class GridShard(Shard):
    """Share `index` of `count` equal shares of an array along its first two dimensions, such as filters and channels.

    Parameters
        channels  number of shares along dimension 1; there are count / channels along dimension 0
        the others are those of `Shard`

    Rank r of a grid of `channels` rows reads the channels of row r // (count / channels). Its filters are those with
    which the sum over a column of the grid, divided over that column, gives rank r share r of the outputs.

    Raises
        ValueError    `channels` does not divide `count`; a dimension that `count` does not divide

    >>> import numpy as np
    >>> GridShard("tp", index=1, count=4, channels=2).cut(np.arange(16).reshape(4, 4))
    array([[ 4,  5],
           [12, 13]])
    """

    channels: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("GridShard: channels", self.channels, at_least=1)
        if self.count % self.channels:
            raise ValueError(f"GridShard: channels must divide the {self.count} ranks, got {self.channels}")

    def _along(self) -> tuple[Shard, Shard]:
        """The shards along dimension 0 and dimension 1."""
        filters = self.count // self.channels
        row, column = divmod(self.index, filters)
        return Shard(self.axis, column, filters, 0, self.channels), Shard(self.axis, row, self.channels, 1)

    def cut(self, whole: Array) -> Array:
        self.check(whole.shape)
        first, second = self._along()
        return second.cut(first.cut(whole))

    def whole_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        first, second = self._along()
        return first.whole_shape(second.whole_shape(shape))

    def own_shape(self, whole: tuple[int, ...]) -> tuple[int, ...]:
        first, second = self._along()
        return second.own_shape(first.own_shape(whole))

    def join(self, shards: Sequence[Array]) -> Array:
        first, second = self._along()
        return first.join([second.join(shards[column :: first.count]) for column in range(first.count)])

    def check(self, shape: tuple[int, ...]) -> None:
        for dim in range(2):
            Shard(self.axis, self.index, self.count, dim).check(shape)


@dataclass(frozen=True)
class FlatShard:
    """Elements `start:stop` of an array as one vector: what a range that crosses parameters has of one of them.

    Parameters
        shape         of the array whose elements are counted
        start, stop   elements in C order; equal numbers: none
        of            the shard that this array is of a larger one, where it is divided twice; None: it is the whole

    A shard of all elements has the shape of the whole, another one a single long dimension: (k, 1) of a matrix, so that
    rules that treat vectors and matrices differently go on doing so.

    >>> import numpy as np
    >>> FlatShard((2, 3), 1, 5).cut(np.arange(6).reshape(2, 3))
    array([[1],
           [2],
           [3],
           [4]])
    """

    shape: tuple[int, ...]
    start: int
    stop: int
    of: Shard | None = None

    @property
    def own_shape(self) -> tuple[int, ...]:
        """The shape of this rank's elements."""
        count = self.stop - self.start
        return self.shape if count == prod(self.shape) else (count, *(1,) * (len(self.shape) - 1))

    def view(self, whole: Array) -> Array:
        """Return this rank's elements in the memory of the whole array."""
        return whole.reshape(-1)[self.start : self.stop].reshape(self.own_shape)

    def cut(self, whole: Array) -> Array:
        """Return a copy of this rank's elements."""
        return self.view(whole if self.of is None else self.of.taken_from(whole, self.shape)).copy()

    def taken_from(self, array: Array, shape: tuple[int, ...]) -> Array:
        """Return this rank's elements of an array for the whole parameter; any other array as it is."""
        return self.cut(array) if array.shape in (self.shape, self.whole_shape(shape)) else array

    def whole_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the whole array."""
        return self.shape if self.of is None else self.of.whole_shape(self.shape)

    def join(self, shards: Sequence[Array]) -> Array:
        """Return the array of all ranks' elements, in order."""
        whole: Any = array_module(shards[0]).concatenate([shard.reshape(-1) for shard in shards])
        return whole.reshape(self.shape)

    def check(self, shape: tuple[int, ...]) -> None:
        """Every array can be divided."""
