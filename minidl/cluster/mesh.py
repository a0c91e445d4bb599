"""A mesh: the ranks of a communicator arranged as a grid, with a communicator along each axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, Self, TypeVar

from minidl.arguments import whole_number


class Group(Protocol):
    """The members of a communicator that a mesh uses."""

    rank: int
    size: int

    def split(self, color: int) -> Self: ...


_G = TypeVar("_G", bound=Group)


class Mesh(Mapping[str, _G]):
    """`mesh["tp"]` is the communicator of the ranks that differ from this one in the coordinate "tp" only.

    Parameters
        comm    the communicator whose ranks are arranged
        shape   number of ranks along each axis
        names   a name for each axis

    Ranks are arranged row by row: consecutive ranks are neighbours along the last axis. `coordinates` maps each name to
    the position of this rank.

    Raises ValueError unless the product of `shape` is the number of ranks and the names are distinct.
    """

    def __init__(self, comm: _G, shape: Sequence[int], names: Sequence[str]) -> None:
        self.shape = tuple(whole_number("each extent of a mesh", extent) for extent in shape)
        self.names = tuple(names)
        if len(self.shape) != len(self.names) or len(set(self.names)) != len(self.names):
            raise ValueError(f"a mesh of shape {self.shape} needs {len(self.shape)} different names, got {self.names}")
        if any(extent < 1 for extent in self.shape) or math.prod(self.shape) != comm.size:
            raise ValueError(f"a mesh of shape {self.shape} does not have the {comm.size} ranks of this communicator")
        strides = [math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))]
        where = [comm.rank // stride % extent for stride, extent in zip(strides, self.shape, strict=True)]
        self.coordinates = dict(zip(self.names, where, strict=True))
        self._along = {
            name: comm.split(comm.rank - coordinate * stride)  # equal for all ranks that differ along this axis only
            for name, coordinate, stride in zip(self.names, where, strides, strict=True)
        }

    def __getitem__(self, name: str) -> _G:
        if name not in self._along:
            raise KeyError(f"this mesh has no axis {name!r}: choose one of {', '.join(self.names)}")
        return self._along[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        shape = zip(self.names, self.shape, strict=True)
        return f"<Mesh: {', '.join(f'{name} {self.coordinates[name]} of {extent}' for name, extent in shape)}>"
