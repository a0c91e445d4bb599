"""Machine: a cluster of nodes with accelerators, as the planner knows it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from math import lcm
from typing import Any

import numpy as np

from minidl.arguments import real_number, whole_number

REACHED = 0.8
"""The share of a link's or a memory's rate that large messages and long vectors reach."""


@dataclass(frozen=True)
class Machine:
    """A cluster of `nodes` machines with `accelerators` each.

    Parameters
        accelerators    of a node
        flops_per_s     peak of one accelerator in 16-bit products, floating-point operations per second
        memory          of one accelerator, bytes
        memory_rate     of that memory, bytes per second
        inside          what one accelerator sends to others of its node, bytes per second, one direction
        between         what a whole node sends to others, bytes per second, one direction; its accelerators share it
        inside_latency  seconds of a message within a node
        between_latency seconds of a message between nodes
        nodes           how many
        efficiency      share of the peak that a large product of matrices reaches
        half            size at which a product reaches half of that: of M x K times K x N, 1 / (1/M + 1/K + 1/N)

    The last two are fitted to published step times of A100s (`fit.py`).

    Raises
        TypeError, ValueError for what is no number, or is out of range

    >>> machine = MACHINES["a100x8"]
    >>> machine.product_seconds(2048, 12288, 4608) > 2 * 2048 * 12288 * 4608 / machine.flops_per_s
    True
    """

    accelerators: int
    flops_per_s: float
    memory: float
    memory_rate: float
    inside: float
    between: float
    inside_latency: float = 3e-6
    between_latency: float = 5e-6
    nodes: int = 1
    efficiency: float = 0.761
    half: float = 129.8

    def __post_init__(self) -> None:
        whole_number("Machine: accelerators", self.accelerators, at_least=1)
        whole_number("Machine: nodes", self.nodes, at_least=1)
        for each in fields(self):
            if each.name not in ("accelerators", "nodes", "efficiency"):
                may_be_zero = each.name.endswith("latency") or each.name == "half"
                limits: dict[str, Any] = {"at_least": 0} if may_be_zero else {"above": 0}
                real_number(f"Machine: {each.name}", getattr(self, each.name), **limits)
        real_number("Machine: efficiency", self.efficiency, above=0, at_most=1)

    @property
    def world(self) -> int:
        """All accelerators."""
        return self.nodes * self.accelerators

    def product_seconds(self, m: float, k: float, n: float, count: float = 1) -> float:
        """Seconds to compute `count` products of m x k by k x n."""
        size = 1 / (1 / m + 1 / k + 1 / n)
        return 2 * m * k * n * count / (self.flops_per_s * self.efficiency * size / (size + self.half))

    def memory_seconds(self, nbytes: float) -> float:
        """Seconds in which that many bytes are read or written."""
        return nbytes / (REACHED * self.memory_rate)

    def link(self, stride: int, size: int) -> tuple[float, float]:
        """Latency and seconds a byte of a ring over ranks r, r + stride, ..., `size` of them, all such rings at once.

        If a ring leaves a node, its slowest link is the one between nodes, which it shares with all others there.
        """
        return self._shared(0 if self.nodes == 1 else _leaving(self.accelerators, stride, size))

    def exchange(self, stride: int, size: int) -> tuple[float, float]:
        """Latency and seconds a byte of an all-to-all among the ranks of each such ring, all rings at once."""
        return self._shared(0.0 if self.nodes == 1 else _exchanged(self.accelerators, stride, size))

    def _shared(self, leaving: float) -> tuple[float, float]:
        """Latency and seconds a byte of a rank, if as much as `leaving` ranks send at a time leaves a node."""
        inside = REACHED * self.inside
        if not leaving:
            return self.inside_latency, 1 / inside
        return self.between_latency, 1 / min(inside, REACHED * self.between / leaving)


@lru_cache(maxsize=1024)
def _leaving(accelerators: int, stride: int, size: int) -> int:
    """The ranks of a node, at most, whose next one of the ring is on another node."""
    block = stride * size
    if stride % accelerators == 0:
        return accelerators if size > 1 else 0
    if accelerators % stride == 0 == block % accelerators:
        return stride if block > accelerators else 0
    ranks = np.arange(lcm(accelerators, block))  # then it begins again
    following = ranks + np.where(ranks % block < block - stride, stride, stride - block)
    leaves = following // accelerators != ranks // accelerators
    return int(leaves.reshape(-1, accelerators).sum(axis=1).max())


@lru_cache(maxsize=1024)
def _exchanged(accelerators: int, stride: int, size: int) -> float:
    """What leaves a node, at most, in an all-to-all, relative to what a rank sends."""
    block = stride * size
    ranks = np.arange(lcm(accelerators, block))
    ring = ranks // block * stride + ranks % stride
    _, pair, there = np.unique(ring * len(ranks) + ranks // accelerators, return_inverse=True, return_counts=True)
    away = (size - there[pair]).reshape(-1, accelerators)  # of a rank's ring
    return float(away.sum(axis=1).max()) / max(size - 1, 1)


MACHINES = {
    "a100x8": Machine(8, 312e12, 80e9, 2.039e12, inside=300e9, between=8 * 25e9),
    "h100x8": Machine(8, 989e12, 80e9, 3.35e12, inside=450e9, between=8 * 50e9),
}
"""Nodes with the named number of accelerators: NVIDIA's data sheets, a network card of 200 or 400 Gbit/s for each."""
