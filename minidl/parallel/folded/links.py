"""FoldedTree: the links of a tree of racks, where one rank is played for all that behave alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache

from minidl.cluster.cost.topologies import Tree

Route = tuple[float, tuple[int, ...]]
"""The latency of a message in seconds, and its links."""


class FoldedTree:
    """The network between the ranks that are played; a link stands for those of all ranks and racks that are alike.

    If n of a rack's ranks behave alike, each of them gets an n-th of the rack's uplink: so does the one that is played.

    Parameters
        tree    the topology
        played  for each rank of the run, the number of the rank that is played for it

    Attributes
        capacities      bytes per second of each link
        is_symmetric    whether racks of the same ranks are divided in the same way
    """

    def __init__(self, tree: Tree, played: Sequence[int]) -> None:
        self._tree, self._played = tree, played
        self._ranks = max(played) + 1
        racks = [Counter(played[i : i + tree.per_rack]) for i in range(0, len(played), tree.per_rack)]
        kinds = list(dict.fromkeys(frozenset(rack.items()) for rack in racks))
        self._kind = [kinds.index(frozenset(rack.items())) for rack in racks]
        shares = [{count for _, count in kind} for kind in kinds]
        self.is_symmetric = sum(map(len, kinds)) == self._ranks and all(len(share) == 1 for share in shares)
        uplinks = [tree.uplink[1] / max(share) for share in shares]
        self.capacities = (tree.nic[1],) * (2 * self._ranks) + tuple(speed for speed in uplinks for _ in range(2))
        self._is_own = [True] * (2 * self._ranks) + [len(kind) == 1 for kind in kinds for _ in range(2)]
        self._routes: dict[Route, int] = {}  # of collectives, with the number by which `path` knows them
        self.route = cache(self._route)

    def _route(self, src: int, dst: int) -> Route:
        """The route of a message between two ranks of the run, over the links of those that are played."""
        latency, links = self._tree.path(src, dst)
        return latency, tuple(map(self._link, links))

    def _link(self, link: int) -> int:
        number, direction = divmod(link, 2)
        if number < self._tree.ranks:
            return 2 * self._played[number] + direction
        return 2 * (self._ranks + self._kind[number - self._tree.ranks]) + direction

    def address(self, src: int, dst: int) -> int:
        """A number that stands for `dst` in messages of the rank that is played for both ranks of the run."""
        return self._ranks + self._routes.setdefault(self.route(src, dst), len(self._routes))

    def path(self, src: int, dst: int) -> Route:
        """As of a topology: of a message between two ranks that are played, or to an address."""
        if dst >= self._ranks:
            return list(self._routes)[dst - self._ranks]
        return self.route(self._played.index(src), self._played.index(dst))

    def seconds(self, address: int, nbytes: int) -> float | None:
        """The time of a message to an address; None if other ranks may use the links of its route."""
        latency, links = self.path(0, address)
        if not all(self._is_own[link] for link in links):
            return None
        return latency + nbytes / min(self.capacities[link] for link in links)
