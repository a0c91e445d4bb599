"""Racks of nodes, a switch in each, and one core switch between the racks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from minidl.arguments import whole_number
from minidl.cluster.cost.topologies.topology import Link, Topology, checked_link


@dataclass(frozen=True, repr=False)
class Tree(Topology):
    """Racks of nodes, a switch in each, and one core switch between the racks.

    Parameters
        racks      number of racks
        per_rack   nodes in each
        nic        (latency in seconds, bytes per second) of each node's network card
        uplink     the same for each rack's link to the core switch

    Links are numbered: card out and card in of rank 0, of rank 1, ..., then up and down of rack 0, of rack 1, ...

    Raises TypeError or ValueError for counts below 1, latencies below 0, and speeds that are not above 0.

    >>> Tree(racks=2, per_rack=2, nic=(1e-6, 1e9), uplink=(5e-6, 2e9)).path(1, 2)
    (1.2e-05, (2, 8, 11, 5))
    """

    maker = "tree"

    racks: int
    per_rack: int
    nic: Link
    uplink: Link

    def __post_init__(self) -> None:
        for name in ("racks", "per_rack"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), at_least=1))
        for name in ("nic", "uplink"):
            object.__setattr__(self, name, checked_link(name, getattr(self, name)))

    @property
    def ranks(self) -> int:
        return self.racks * self.per_rack

    @property
    def neighbours(self) -> int:
        return self.per_rack

    @cached_property
    def links(self) -> tuple[Link, ...]:
        return (self.nic,) * (2 * self.ranks) + (self.uplink,) * (2 * self.racks)

    def route(self, src: int, dst: int) -> tuple[int, ...]:
        out, into = 2 * src, 2 * dst + 1
        source_rack, target_rack = src // self.per_rack, dst // self.per_rack
        if source_rack == target_rack:
            return out, into
        return out, 2 * (self.ranks + source_rack), 2 * (self.ranks + target_rack) + 1, into
