"""How long computation takes on a simulated node."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from minidl.arguments import real_number
from minidl.cluster.engines.protocol import BYTES_PER_S, FLOPS_PER_S
from minidl.random import Purpose, stream


@dataclass(frozen=True)
class Node:
    """How fast a simulated node computes. Work takes max(flops / flops_per_s, bytes / bytes_per_s), the roofline model.

    Parameters
        flops_per_s  floating-point operations per second; math.inf for no limit
        bytes_per_s  bytes of memory traffic per second; math.inf for no limit
        jitter       each interval of work is multiplied by a random log-normal factor of mean 1; this is the standard
                     deviation of the factor's logarithm, and the seed of the launch decides the factors
        speeds       divides the time of each rank's work: a list with one speed for each rank, or a dictionary by rank
                     (ranks not in it have speed 1)

    Jitter and speeds also apply to seconds that a program states itself (`comm.compute(seconds=...)`).

    >>> Node(flops_per_s=1e9, bytes_per_s=1e10).seconds(flops=2e9, nbytes=1e9)
    2.0

    Source: Williams, Waterman, Patterson (2009), Roofline, CACM 52(4).
    """

    flops_per_s: float
    bytes_per_s: float
    jitter: float = 0.0
    speeds: Sequence[float] | Mapping[int, float] | None = None

    def __post_init__(self) -> None:
        for name in ("flops_per_s", "bytes_per_s"):
            speed = real_number(name, getattr(self, name), above=0, at_most=math.inf, hint="math.inf means no limit")
            object.__setattr__(self, name, speed)
        object.__setattr__(self, "jitter", real_number("jitter", self.jitter, at_least=0))
        if self.speeds is None:
            return
        if not isinstance(self.speeds, Mapping | Sequence | np.ndarray):
            raise TypeError(f"speeds must have a speed for each rank, as a list or by rank, got {self.speeds!r}")
        for speed in self.speeds.values() if isinstance(self.speeds, Mapping) else self.speeds:
            real_number("each of speeds", speed, above=0)

    def check(self, nodes: int) -> None:
        """Raise ValueError unless the speeds fit a run on `nodes` ranks."""
        if isinstance(self.speeds, Mapping):
            strange = [rank for rank in self.speeds if rank not in range(nodes)]
            if strange:
                raise ValueError(f"the node has a speed for rank {strange[0]}, but the run has ranks 0 to {nodes - 1}")
        elif self.speeds is not None and len(self.speeds) != nodes:
            raise ValueError(f"the node has {len(self.speeds)} speeds, but the run has {nodes} ranks")

    def seconds(self, flops: float, nbytes: float) -> float:
        """The seconds that the work takes on a node of speed 1."""
        return max(flops / self.flops_per_s, nbytes / self.bytes_per_s)

    def speed(self, rank: int) -> float:
        """The speed of this rank; 2 takes half the time of 1."""
        if self.speeds is None:
            return 1.0
        return float(self.speeds.get(rank, 1.0) if isinstance(self.speeds, Mapping) else self.speeds[rank])


SPEED_OF_A_CORE = Node(FLOPS_PER_S, BYTES_PER_S)


class Core:
    """Turns the work of one rank into seconds.

    Without a node, work that a program states takes as long as on processes, where the rank sleeps for that time.
    """

    def __init__(self, node: Node | None, rank: int, slowdown: float, seed: int) -> None:
        self._node = node or SPEED_OF_A_CORE
        self.factor = slowdown / (node.speed(rank) if node else 1.0)
        self._jitter = node.jitter if node else 0.0
        self._rng = stream(Purpose.JITTER, seed, rank) if self._jitter else None

    def seconds(self, seconds: float, flops: float, nbytes: float) -> float:
        """The seconds that this rank takes for the stated seconds and the work together."""
        seconds += self._node.seconds(flops, nbytes)
        if self._rng is not None and seconds:
            seconds *= self._rng.lognormal(-(self._jitter**2) / 2, self._jitter)  # the mean of the factor is 1
        return seconds * self.factor
