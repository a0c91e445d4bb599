"""How a communicator makes others of some of its ranks: split, mesh, and its first ranks."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache, partial
from typing import Any, Self, overload

import numpy as np

from minidl.arguments import whole_number
from minidl.cluster import collectives
from minidl.cluster.collective_calls import CollectiveCalls
from minidl.cluster.diagnosis.fingerprints import Fingerprint
from minidl.cluster.mesh import Mesh
from minidl.cluster.rank import Rank


class Groups(CollectiveCalls):
    """The methods of a communicator that return communicators."""

    def __init__(
        self, owner: Rank, ranks: tuple[int, ...], group: int, rng: np.random.Generator, axis: str = ""
    ) -> None:
        super().__init__(owner, ranks, group, axis)
        self.rng = rng
        self._whole: Self | None = None  # the communicator whose first ranks these are
        self._first_ranks: dict[int, Self] = {}  # by their number

    @overload
    def split(self, color: int, key: int = 0) -> Self: ...

    @overload
    def split(self, color: None, key: int = 0) -> None: ...

    def split(self, color: Any, key: int = 0) -> Self | None:
        """Return a communicator of the ranks with the same color, numbered from 0 by key, then by rank here.

        Every rank calls it, as MPI's Comm_split; one with the color None gets None.
        """
        if isinstance(color, Collection) and not isinstance(color, str):
            raise TypeError(
                f"split: color is one number, equal on the ranks of a group, not a {type(color).__name__}: for a list "
                "of ranks, type comm.split(0 if comm.rank in ranks else None)"
            )
        mine = color, key, self._owner.next_group("split")
        given = self._collective(lambda channel: channel.play(collectives.all_gather_ring, mine), Fingerprint("split"))
        groups, first = _divided(self._ranks, tuple(given))
        numbers = self._owner.take_groups(first, len(groups))
        if color is None:
            return None
        number = numbers[list(groups).index(color)]
        return type(self)(self._owner, groups[color], number, self.rng, self.axis)

    def mesh(self, shape: Sequence[int], names: Sequence[str]) -> Mesh[Self]:
        """Arrange the ranks as a grid with a communicator along each axis: `comm.mesh((2, 4), ("dp", "tp"))["tp"]`."""
        return Mesh(self, shape, names)

    def _groups_of(self, mesh: Mesh[Self]) -> Callable[[tuple[str, ...]], Self]:
        """Agree with the other ranks on a mesh; the returned function makes the group of this rank along some axes.

        The groups along the same axes have no rank in common, so a number for each selection of axes is enough. Its
        first must be free on all ranks: that is the one thing that they do not know of each other, for ranks may have
        made different numbers of groups. If only one axis has several ranks, the groups along it are this communicator,
        and in all others this rank is alone: it chooses their numbers by itself.
        """
        fingerprint = Fingerprint("mesh", shape=mesh.shape, axes=mesh.names)
        first = self._owner.next_group("mesh")
        if sum(extent > 1 for extent in mesh.shape) > 1:
            free = np.array([first])
            self._collective(lambda channel: channel.play(collectives.ALL_REDUCE["tree"], free, "max"), fingerprint)
            first = int(free[0])
        else:
            self._post(fingerprint)
        return partial(self._group_along, mesh, self._owner.take_groups(first, 1 << len(mesh.names)))

    def _group_along(self, mesh: Mesh[Self], numbers: range, axes: tuple[str, ...]) -> Self:
        selection = sum(1 << mesh.names.index(name) for name in axes)
        ranks = tuple(self._ranks[rank] for rank in mesh.ranks_along(axes))
        if len(ranks) == self.size:
            named = copy.copy(self)  # the same group, whose calls both count together
            named.axis = _name(mesh, axes)
            return named
        return type(self)(self._owner, ranks, numbers[selection], self.rng, _name(mesh, axes))

    def first_ranks(self, count: int) -> Self:
        """Return the communicator of ranks 0 to count - 1, without a message; the other ranks do not call it.

        It is the same communicator each time, and this one if `count` is its size. Use: the nodes of a run, whose last
        ranks are servers.
        """
        hint = f"rank {self.rank} is to be one of the first ranks of this communicator, which has {self.size}"
        count = whole_number("count", count, at_least=self.rank + 1, at_most=self.size, hint=hint)
        self._owner.next_group("first_ranks")  # raises an error in background work
        whole = self if self._whole is None else self._whole
        if count == whole.size:
            return whole
        if count not in whole._first_ranks:
            made = type(self)(self._owner, self._ranks[:count], whole._group + count, self.rng)
            made._whole = whole
            whole._first_ranks[count] = made
        return whole._first_ranks[count]


@lru_cache(4)
def _divided(
    ranks: tuple[int, ...], given: tuple[tuple[int | None, int, int], ...]
) -> tuple[dict[int, tuple[int, ...]], int]:
    """The groups of a split by color, and an index that is free on all ranks, from each rank's color, key and index.

    Cached for simulated ranks: thousands would each sort thousands, and keep a tuple of their own of the same ranks.
    """
    first = max(free for _, _, free in given)  # hence no two groups with a common rank have the same number
    members: dict[int, list[tuple[int, int]]] = {}
    for rank, (color, key, _) in enumerate(given):
        if color is not None:
            members.setdefault(color, []).append((key, rank))
    return {color: tuple(ranks[rank] for _, rank in sorted(members[color])) for color in sorted(members)}, first


def _name(mesh: Mesh[Any], axes: tuple[str, ...]) -> str:
    """The axes with more than one rank, as the ledger has them: "dp,pp"."""
    return ",".join(name for name in axes if mesh.shape[mesh.names.index(name)] > 1)
