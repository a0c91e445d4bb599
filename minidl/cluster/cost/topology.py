"""Where ranks sit and which links a message takes: a tree of racks."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

Link = tuple[float, float]  # latency in seconds, bytes a second


@dataclass(frozen=True)
class Tree:
    """Racks of nodes, a switch in each, and one core switch between the racks.

    nic: of each node, uplink: of each rack, as (latency in seconds, bytes a second). Both directions of a cable are
    links of their own. Links are numbered: card out and card in of rank 0, of rank 1, ..., then up and down of rack 0,
    of rack 1, ... The switches themselves cost nothing.

    Errors: TypeError or ValueError for counts below 1, latencies below 0, speeds that are not above 0.

    >>> Tree(racks=2, per_rack=2, nic=(1e-6, 1e9), uplink=(5e-6, 2e9)).path(1, 2)
    (1.2e-05, (2, 8, 11, 5))
    """

    racks: int
    per_rack: int
    nic: Link
    uplink: Link

    def __post_init__(self) -> None:
        for name in ("racks", "per_rack"):
            object.__setattr__(self, name, _count(name, getattr(self, name)))
        for name in ("nic", "uplink"):
            object.__setattr__(self, name, _link(name, getattr(self, name)))

    @property
    def ranks(self) -> int:
        """How many ranks have a place."""
        return self.racks * self.per_rack

    @cached_property
    def capacities(self) -> tuple[float, ...]:
        """Bytes a second of each link."""
        return (self.nic[1],) * (2 * self.ranks) + (self.uplink[1],) * (2 * self.racks)

    def path(self, src: int, dst: int) -> tuple[float, tuple[int, ...]]:
        """What a message waits before it flows, in seconds, and the links that it then takes; none to oneself."""
        if src == dst:
            return 0.0, ()
        out, into = 2 * src, 2 * dst + 1
        source_rack, target_rack = src // self.per_rack, dst // self.per_rack
        if source_rack == target_rack:
            return 2 * self.nic[0], (out, into)
        up, down = 2 * (self.ranks + source_rack), 2 * (self.ranks + target_rack) + 1
        return 2 * self.nic[0] + 2 * self.uplink[0], (out, up, down, into)


def _count(name: str, value: Any) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if isinstance(value, bool) or count < 1:
        raise ValueError(f"{name} must be at least 1, got {value!r}")
    return count


def _link(name: str, value: Any) -> Link:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise TypeError(f"{name} must be a pair (latency in seconds, bytes a second), got {value!r}")
    if any(isinstance(number, bool) or not isinstance(number, Real) for number in value):
        raise TypeError(f"{name} must be a pair of numbers (latency in seconds, bytes a second), got {value!r}")
    latency, speed = map(float, value)
    if not 0 <= latency < math.inf:
        raise ValueError(f"the latency of {name} must be finite and at least 0 seconds, got {latency}")
    if not 0 < speed < math.inf:
        raise ValueError(f"the speed of {name} must be finite and above 0 bytes a second, got {speed}")
    return latency, speed
