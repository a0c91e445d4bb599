"""A torus: a grid of any number of dimensions, each of which is closed to a ring."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from minidl.cluster.cost.topologies.topology import Link, Topology, checked_link, checked_sizes


@dataclass(frozen=True, repr=False)
class Torus(Topology):
    """A grid of nodes whose dimensions are closed to rings, with a cable between neighbours.

    Parameters
        dimensions   nodes along each dimension; rank = x + X (y + Y z) at (x, y, z) in X x Y x Z
        link         (latency in seconds, bytes per second) of each direction of a cable

    Messages go along the first dimension until its coordinate is right, then along the next, the shorter way round;
    at equal distance, upwards. No network card limits a node: it can use all its links at once, and messages that pass
    a node slow down its own only on the links that they share.

    Source: Dally and Seitz, The torus routing chip (1986). SimGrid's TorusZone has the same routes, except that it goes
    downwards from coordinate n/2 to 0.

    >>> torus = Torus((4, 3), link=(1e-6, 1e9))
    >>> torus.ranks, len(torus.route(0, 2)), len(torus.route(0, 3)), len(torus.route(0, 10))
    (12, 2, 1, 3)
    """

    maker = "torus"

    dimensions: tuple[int, ...]
    link: Link

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimensions", checked_sizes("dimensions", self.dimensions))
        object.__setattr__(self, "link", checked_link("link", self.link))

    @cached_property
    def ranks(self) -> int:
        return math.prod(self.dimensions)

    @property
    def neighbours(self) -> int:
        return self.dimensions[0]

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """By dimension, then by rank: upwards, then downwards. Those between equal or the same two nodes are unused."""
        return (self.link,) * (2 * len(self.dimensions) * self.ranks)

    def route(self, src: int, dst: int) -> tuple[int, ...]:
        found, here, stride = [], src, 1
        for dimension, size in enumerate(self.dimensions):
            first = 2 * dimension * self.ranks
            at, to = here // stride % size, dst // stride % size
            up = (to - at) % size
            is_down = up > size - up
            for _ in range(size - up if is_down else up):
                found.append(first + 2 * here + is_down)
                after = (at - 1 if is_down else at + 1) % size
                here, at = here + (after - at) * stride, after
            stride *= size
        return tuple(found)
