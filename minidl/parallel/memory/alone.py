"""Alone: the communicator with which one rank's shapes are computed, without the other ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidl.cluster.collectives.partition import split
from minidl.cluster.mesh import Mesh
from minidl.kernels import Array


class Alone:
    """The communicator of a rank among ranks that compute like shapes: what they would send is like its own."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size

    def mesh(self, shape: tuple[int, ...], names: tuple[str, ...]) -> Mesh[Any]:
        return Mesh[Any](self, shape, names)

    def _groups_of(self, mesh: Mesh[Any]) -> Callable[[tuple[str, ...]], Alone]:
        def group(axes: tuple[str, ...]) -> Alone:
            ranks = mesh.ranks_along(axes)
            return Alone(ranks.index(self.rank), len(ranks))

        return group

    def all_reduce(self, x: Any, *args: Any, **options: Any) -> Any:
        return x * self.size if isinstance(x, int) else x

    def all_gather(self, x: Array, *args: Any, **options: Any) -> list[Array]:
        return [x] * self.size

    def reduce_scatter(self, x: Array, *args: Any, **options: Any) -> Array:
        return split(x, self.size)[self.rank]

    def isend(self, x: Array, rank: int) -> Arrived:
        return Arrived()

    def irecv(self, rank: int) -> Arrived:
        return Arrived()


class Arrived:
    """A message without contents: where it is written, nothing changes."""

    def wait(self) -> float:
        return 0.0
