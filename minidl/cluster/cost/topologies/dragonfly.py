"""A dragonfly: groups of routers with a cable between any two groups."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

from minidl.cluster.cost.topologies.topology import Link, Topology, checked_link, checked_sizes


@dataclass(frozen=True, repr=False)
class Dragonfly(Topology):
    """Groups of chassis of routers of nodes; every two groups have a cable between them.

    Parameters
        sizes    (groups, chassis in a group, routers in a chassis, nodes at a router)
        cables   (between two groups, between two chassis, between two routers of a chassis): a link of n cables is n
                 times as fast; default (1, 1, 1)
        link     (latency in seconds, bytes per second) of each direction of a cable

    A router has a cable to each of its nodes, to every other router of its chassis, and to the router at the same place
    in every other chassis of its group. The cable between groups g and h ends at router h mod R of group g and at
    router g mod R of group h, where a group has R routers, counted chassis by chassis.

    Routes are minimal: to the router with the cable to the other group, over it, and to the router of the receiver;
    within a group first to the right place in the chassis, then to the right chassis. Not modelled: Valiant's and
    adaptive routing, which real dragonflies use when the one cable between two groups is full.

    Sources: Kim, Dally, Scott and Abts, Technology-driven, highly-scalable dragonfly topology (2008); Faanes et al.,
    Cray Cascade (2012), for chassis. SimGrid's DragonflyZone has the same routes between groups, of which it has at
    most as many as routers in a chassis.

    >>> dragonfly = Dragonfly((3, 2, 4, 2), link=(1e-6, 1e9))
    >>> dragonfly.ranks, len(dragonfly.route(0, 1)), len(dragonfly.route(0, 15)), len(dragonfly.route(15, 47))
    (48, 2, 4, 7)
    """

    maker = "dragonfly"

    sizes: tuple[int, int, int, int]
    cables: tuple[int, int, int] = (1, 1, 1)
    link: Link = field(kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", checked_sizes("sizes", self.sizes, count=4))
        object.__setattr__(self, "cables", checked_sizes("cables", self.cables, count=3))
        object.__setattr__(self, "link", checked_link("link", self.link))

    @cached_property
    def ranks(self) -> int:
        return math.prod(self.sizes)

    @property
    def neighbours(self) -> int:
        return math.prod(self.sizes[1:])

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Of nodes, out and in; from each router to each place in the chassis, and to each chassis; between groups.

        Those from a router or a group to itself are unused.
        """
        groups, chassis, in_chassis, _ = self.sizes
        routers, latency, speed = groups * chassis * in_chassis, *self.link
        between_groups, between_chassis, between_routers = ((latency, speed * number) for number in self.cables)
        return (
            *(self.link,) * (2 * self.ranks),
            *(between_routers,) * (routers * in_chassis),
            *(between_chassis,) * (routers * chassis),
            *(between_groups,) * (groups * groups),
        )

    def route(self, src: int, dst: int) -> tuple[int, ...]:
        groups, chassis, in_chassis, nodes = self.sizes
        in_group, to_chassis = chassis * in_chassis, 2 * self.ranks + groups * chassis * in_chassis**2
        here, there = src // nodes, dst // nodes
        group, target = here // in_group, there // in_group
        found = [2 * src]

        def within_a_group(here: int, there: int) -> None:
            turn = here - here % in_chassis + there % in_chassis
            if turn != here:
                found.append(2 * self.ranks + here * in_chassis + there % in_chassis)
            if turn != there:
                found.append(to_chassis + turn * chassis + there % in_group // in_chassis)

        if group != target:
            within_a_group(here, group * in_group + target % in_group)
            found.append(to_chassis + groups * in_group * chassis + group * groups + target)
            here = target * in_group + group % in_group
        within_a_group(here, there)
        return (*found, 2 * dst + 1)
