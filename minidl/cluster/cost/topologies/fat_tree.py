"""A fat tree: levels of switches, with more than one way up, so that the top carries what the nodes send."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

from minidl.cluster.cost.topologies.topology import Link, Topology, checked_link, checked_sizes


@dataclass(frozen=True, repr=False)
class FatTree(Topology):
    """Levels of switches, of which each has several switches above it: an extended generalized fat tree.

    Parameters, each with one number for each level, from the nodes to the top
        down       switches or nodes below each switch
        up         switches above each switch or node of the level below; default 1, down[0], down[1], ...: as many
                   cables go up from a switch as come from below, so that no level is a bottleneck
        parallel   cables between a switch and the one above it; default 1
        link       (latency in seconds, bytes per second) of each direction of a cable

    A message goes up to the first switch that has both nodes below it, then down. Of the cables upwards it takes, on
    level l, number dst // (up[0] parallel[0] ... up[l - 1] parallel[l - 1]) mod (up[l] parallel[l]): destination mod k,
    so that messages to one node meet on the way down only. Of parallel cables downwards it takes src mod parallel.

    Sources: Ohring, Ibel, Das and Kumar, On generalized fat trees (1995); Zahavi, D-Mod-K routing providing
    non-blocking traffic for shift permutations on real life fat trees (2010). SimGrid's FatTreeZone has the same routes
    where only the highest level has parallel cables.

    >>> tree = FatTree((4, 3), link=(1e-6, 1e9))
    >>> tree.ranks, tree.up, len(tree.route(0, 3)), len(tree.route(0, 4))
    (12, (1, 4), 2, 4)
    """

    maker = "fat_tree"

    down: tuple[int, ...]
    up: tuple[int, ...] = ()
    parallel: tuple[int, ...] = ()
    link: Link = field(kw_only=True)

    def __post_init__(self) -> None:
        down = checked_sizes("down", self.down)
        given = {"down": down, "up": self.up or (1, *down[:-1]), "parallel": self.parallel or (1,) * len(down)}
        for name, sizes in given.items():
            object.__setattr__(self, name, checked_sizes(name, sizes, count=len(down)))
        object.__setattr__(self, "link", checked_link("link", self.link))

    @cached_property
    def ranks(self) -> int:
        return math.prod(self.down)

    @property
    def neighbours(self) -> int:
        return self.down[0]

    @cached_property
    def cables(self) -> tuple[int, ...]:
        """Number of cables from each level to the one above."""
        return tuple(
            math.prod(self.up[: level + 1]) * math.prod(self.down[level:]) * self.parallel[level]
            for level in range(len(self.down))
        )

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """By level, then by the node or switch below, then by its cable: up and down."""
        return (self.link,) * (2 * sum(self.cables))

    def route(self, src: int, dst: int) -> tuple[int, ...]:
        # A level has `copies` switches above the same `below` nodes; the message passes number `place` of them, once
        # above src and, unless that is the top of its way, once above dst.
        up, down = [], []
        first, place, copies, below, ports_below = 0, 0, 1, 1, 1
        for level, (ways, cables) in enumerate(zip(self.up, self.parallel, strict=True)):
            if src // below == dst // below:
                break
            ports = ways * cables
            port = dst // ports_below % ports
            back = port % ways + src % cables * ways
            up.append(first + 2 * ((place + copies * (src // below)) * ports + port))
            down.append(first + 2 * ((place + copies * (dst // below)) * ports + back) + 1)
            first += 2 * self.cables[level]
            place, copies = place + copies * (port % ways), copies * ways
            below, ports_below = below * self.down[level], ports_below * ports
        return (*up, *reversed(down))
