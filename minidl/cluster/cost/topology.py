"""A tree of racks: the positions of ranks and the links that a message takes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from minidl.arguments import real_number, whole_number

Link = tuple[float, float]  # latency in seconds, bytes per second


@dataclass(frozen=True)
class Tree:
    """Racks of nodes, a switch in each, and one core switch between the racks.

    Parameters
        racks      number of racks
        per_rack   nodes in each
        nic        (latency in seconds, bytes per second) of each node's network card
        uplink     the same for each rack's link to the core switch

    Each direction of a cable is a link of its own. Links are numbered: card out and card in of rank 0, of rank 1, ...,
    then up and down of rack 0, of rack 1, ... The switches themselves take no time.

    Raises TypeError or ValueError for counts below 1, latencies below 0, and speeds that are not above 0.

    >>> Tree(racks=2, per_rack=2, nic=(1e-6, 1e9), uplink=(5e-6, 2e9)).path(1, 2)
    (1.2e-05, (2, 8, 11, 5))
    """

    racks: int
    per_rack: int
    nic: Link
    uplink: Link

    def __post_init__(self) -> None:
        for name in ("racks", "per_rack"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), at_least=1))
        for name in ("nic", "uplink"):
            object.__setattr__(self, name, _link(name, getattr(self, name)))

    @property
    def ranks(self) -> int:
        """Number of ranks in the tree."""
        return self.racks * self.per_rack

    @cached_property
    def capacities(self) -> tuple[float, ...]:
        """Bytes per second of each link."""
        return (self.nic[1],) * (2 * self.ranks) + (self.uplink[1],) * (2 * self.racks)

    def path(self, src: int, dst: int) -> tuple[float, tuple[int, ...]]:
        """The latency of a message in seconds and the numbers of the links on its path; none from a rank to itself."""
        if src == dst:
            return 0.0, ()
        out, into = 2 * src, 2 * dst + 1
        source_rack, target_rack = src // self.per_rack, dst // self.per_rack
        if source_rack == target_rack:
            return 2 * self.nic[0], (out, into)
        up, down = 2 * (self.ranks + source_rack), 2 * (self.ranks + target_rack) + 1
        return 2 * self.nic[0] + 2 * self.uplink[0], (out, up, down, into)


def _link(name: str, value: Any) -> Link:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise TypeError(f"{name} must be a pair (latency in seconds, bytes per second), got {value!r}")
    latency = real_number(f"the latency of {name} (seconds)", value[0], at_least=0)
    return latency, real_number(f"the speed of {name} (bytes per second)", value[1], above=0)
