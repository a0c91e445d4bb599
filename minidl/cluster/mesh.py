"""A mesh: the ranks of a communicator arranged as a grid, with a communicator for each selection of its axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, Self, TypeVar

from minidl.arguments import whole_number


class Group(Protocol):
    """The members of a communicator that a mesh uses."""

    rank: int
    size: int

    def _groups_of(self, mesh: Mesh[Self]) -> Callable[[tuple[str, ...]], Self]:
        """Agree with the other ranks on a mesh; the returned function makes the group of this rank along some axes."""
        ...


_G = TypeVar("_G", bound=Group)


class Mesh(Mapping[str, _G]):
    """The ranks of a communicator as a grid: `mesh["tp"]` is the communicator along the axis "tp".

    Parameters
        comm    the communicator whose ranks are arranged
        shape   number of ranks along each axis
        names   a name for each axis

    Attributes
        comm, shape, names   as given
        coordinates          position of this rank along each axis, by name

    Ranks are arranged row by row: consecutive ranks are neighbours along the last axis.

    `mesh["tp"]` has the ranks that differ from this one in the coordinate "tp" only; `mesh["dp", "pp"]` joins axes: its
    ranks differ in these two coordinates only, and are numbered row by row. Any selection of names works, in any order.
    Along axes of one rank, and in `mesh[()]`, this rank is alone. A selection with all ranks uses the group of `comm`;
    every other selection has a group of its own. Timeline and ledger name a communicator by its axes.

    Ranks make a mesh together. It costs one all-reduce of a number; a mesh with at most one axis of more than one rank
    costs no message. Communicators are made when they are asked for, without messages, so ranks may ask in any order.

    Raises
        ValueError           unless the product of `shape` is the number of ranks and the names are distinct
        CollectiveMismatch   if ranks give different shapes or names

    >>> from minidl import cluster
    >>> def program(comm):
    ...     mesh = comm.mesh((2, 3), ("dp", "tp"))
    ...     return mesh.coordinates, mesh["tp"].all_gather(comm.rank), mesh.rank_at(dp=0)
    >>> cluster.launch(program, nodes=6, on="simulation").results[4]
    ({'dp': 1, 'tp': 1}, [3, 4, 5], 1)
    """

    def __init__(self, comm: _G, shape: Sequence[int], names: Sequence[str]) -> None:
        self.comm = comm
        self.shape = tuple(whole_number("each extent of a mesh", extent) for extent in shape)
        self.names = tuple(names)
        if len(self.shape) != len(self.names) or len(set(self.names)) != len(self.names):
            raise ValueError(f"a mesh of shape {self.shape} needs {len(self.shape)} different names, got {self.names}")
        if any(extent < 1 for extent in self.shape) or math.prod(self.shape) != comm.size:
            raise ValueError(f"a mesh of shape {self.shape} does not have the {comm.size} ranks of this communicator")
        self._extent = dict(zip(self.names, self.shape, strict=True))
        self._stride = {name: math.prod(self.shape[axis + 1 :]) for axis, name in enumerate(self.names)}
        self.coordinates = self.coordinates_of(comm.rank)
        self._groups: dict[tuple[str, ...], _G] = {}
        self._group = comm._groups_of(self)

    def __getitem__(self, axes: str | tuple[str, ...]) -> _G:
        chosen = self._in_order((axes,) if isinstance(axes, str) else axes)
        known = self._groups.get(chosen)
        if known is None:
            made = self.comm if chosen == self.names else self._group(chosen)
            known = self._groups.setdefault(chosen, made)  # background work may have made it meanwhile
        return known

    def rank_at(self, /, **coordinates: int) -> int:
        """Return the rank, in `comm`, at these coordinates; those that are not given are this rank's own.

        Raises ValueError for an unknown axis and for a coordinate outside of the mesh.
        """
        rank = self.comm.rank
        for name, coordinate in coordinates.items():
            if name not in self._extent:
                raise ValueError(self._unknown(name))
            most = self._extent[name] - 1
            at = whole_number(name, coordinate, at_least=0, at_most=most, hint=f"{self} has ranks 0 to {most} along it")
            rank += (at - self.coordinates[name]) * self._stride[name]
        return rank

    def coordinates_of(self, rank: int) -> dict[str, int]:
        """Return the position of that rank of `comm` along each axis, by name."""
        rank = whole_number("rank", rank, at_least=0, at_most=self.comm.size - 1)
        return {name: rank // self._stride[name] % self._extent[name] for name in self.names}

    def ranks_along(self, axes: Sequence[str]) -> list[int]:
        """Return the ranks, in `comm`, of `mesh[axes]`: those that differ from this one in these coordinates only."""
        chosen = self._in_order(axes)
        ranks = [self.rank_at(**dict.fromkeys(chosen, 0))]
        for name in chosen:
            ranks = [rank + at * self._stride[name] for rank in ranks for at in range(self._extent[name])]
        return ranks

    def _in_order(self, axes: Sequence[str]) -> tuple[str, ...]:
        """The axes in the order that they have in the mesh."""
        for name in axes:
            if name not in self._extent:
                raise KeyError(self._unknown(name))
        if len(set(axes)) != len(axes):
            raise KeyError(f"each axis of a mesh is named once, got {tuple(axes)}")
        return tuple(name for name in self.names if name in axes)

    def _unknown(self, name: object) -> str:
        return f"this mesh has no axis {name!r}: choose one of {', '.join(self.names)}"

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<Mesh: {', '.join(f'{name} {self.coordinates[name]} of {self._extent[name]}' for name in self.names)}>"
