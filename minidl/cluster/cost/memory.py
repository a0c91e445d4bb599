"""Memory: a device that computes in memory of its own, and a larger host memory behind a link."""

from __future__ import annotations

import math
from dataclasses import dataclass

from minidl.arguments import real_number
from minidl.cluster.cost.topologies import Link


@dataclass(frozen=True)
class Memory:
    """Two tiers of memory in each node: the device, which computes, and the host, which has room for all the rest.

    Parameters
        device  bytes of the device; math.inf for no limit
        link    (latency in seconds, bytes per second) between the tiers, in each of two directions at the same time
        host    how fast the host computes, as a fraction of the device's speed; 0.1 takes ten times as long

    >>> memory = Memory(device=2e6, link=(10e-6, 16e9))
    >>> round(memory.time(1_600_000), 6)
    0.00011
    """

    device: float = math.inf
    link: Link = (0.0, math.inf)
    host: float = 1.0

    def __post_init__(self) -> None:
        hint = "math.inf means no limit"
        device = real_number("device (bytes)", self.device, above=0, at_most=math.inf, hint=hint)
        object.__setattr__(self, "device", device)
        if not (isinstance(self.link, tuple | list) and len(self.link) == 2):
            raise TypeError(
                f"link must be (latency in seconds, bytes per second), such as (10e-6, 16e9), got {self.link!r}"
            )
        latency = real_number("link: latency (seconds)", self.link[0], at_least=0)
        speed = real_number("link: bytes per second", self.link[1], above=0, at_most=math.inf, hint=hint)
        object.__setattr__(self, "link", (latency, speed))
        object.__setattr__(self, "host", real_number("host", self.host, above=0))

    def time(self, nbytes: float) -> float:
        """Seconds of a transfer of `nbytes` in one direction."""
        return self.link[0] + nbytes / self.link[1]
