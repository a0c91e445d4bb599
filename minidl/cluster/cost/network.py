"""What messages cost: a start-up time and a time a byte, or a tree of racks whose links are shared."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from minidl.cluster.cost.topology import Tree

# Alpha: the order of half a small message's round trip between two programs. Beta: 8 / (bits a second of the line).
# Gamma is 0: how fast a node adds arrays up depends on the node.
PRESETS = {
    # TCP between PCs through a switch: 23 us is a good result of NetPIPE, 50 us a common one.
    "1gbe": (50e-6, 8 / 1e9),
    # TCP, 20 us end to end: Hurwitz and Feng, Initial end-to-end performance evaluation of 10-Gigabit Ethernet (Hot
    # Interconnects 11, 2003).
    "10gbe": (20e-6, 8 / 10e9),
    # TCP on a fast server in one data centre: of the order of 10 us; a round figure, not a measurement.
    "100gbe": (10e-6, 8 / 100e9),
    # HDR, 200 Gbit/s. Between MPI programs about 1 us, as for years: an early manual (QLogic InfiniPath) shows 1.06 us
    # by osu_latency.
    "infiniband": (1e-6, 8 / 200e9),
    # NVLink 4 of an H100: 450 GB/s each way (900 in both, says its data sheet); 1.9 us is what NCCL's own cost model
    # takes for a step of the ring (src/graph/tuning.cc, hwLat, protocol LL128).
    "nvlink": (1.9e-6, 1 / 450e9),
}


@dataclass(frozen=True)
class Network:
    """What a message between two ranks costs: alpha seconds, beta seconds a byte; gamma seconds a byte reduced.

    Every rank has one port out and one port in (full duplex, single port): a transfer of n bytes takes both for alpha +
    n beta. With a `topology` (see `Network.tree`) there are links instead, which the messages of one moment share.

    `measured`: for a network that was fitted, the pairs (bytes, seconds a message) to which it was; `residuals` says
    how well it meets them.

    Errors: TypeError or ValueError for anything but finite numbers that are at least 0.

    Source: Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations in MPICH (2005), section
    3; Hockney, The communication challenge for MPP (1994), for the model.

    >>> network = Network(alpha=50e-6, beta=8e-9)
    >>> round(network.time(1_000_000), 6)
    0.00805
    >>> Network.preset("10gbe").beta
    8e-10
    """

    alpha: float
    beta: float
    gamma: float = 0.0
    topology: Tree | None = None
    measured: tuple[tuple[int, float], ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, unit in (("alpha", "seconds a message"), ("beta", "seconds a byte"), ("gamma", "seconds a byte")):
            object.__setattr__(self, name, _seconds(name, unit, getattr(self, name)))

    @classmethod
    def preset(cls, name: str) -> Network:
        """The network of that name: "1gbe", "10gbe", "100gbe", "infiniband" or "nvlink"."""
        if not isinstance(name, str) or name.lower() not in PRESETS:
            raise ValueError(f"unknown network {name!r}: choose {', '.join(map(repr, PRESETS))}, or make a Network")
        return cls(*PRESETS[name.lower()])

    @classmethod
    def tree(
        cls,
        racks: int,
        per_rack: int,
        nic: tuple[float, float],
        uplink: tuple[float, float],
        gamma: float = 0.0,
    ) -> Network:
        """Racks of nodes under one core switch; the messages of one moment share its links max-min fairly.

        Ranks 0 .. per_rack - 1 are in rack 0, and so on. nic, uplink: (latency in seconds, bytes a second) of a node's
        network card and of a rack's link to the core; each has two directions that do not disturb one another. A
        message waits the latencies of its path (two cards; between racks two uplinks too), then its bytes flow.

        Its alpha and beta are those of one message alone on the longest path. "auto" knows the links (`tree_cost.py`).

        >>> network = Network.tree(2, 4, nic=(1e-6, 1e9), uplink=(5e-6, 2e9))
        >>> network.ranks, network.alpha, network.beta
        (8, 1.2e-05, 1e-09)
        """
        topology = Tree(racks, per_rack, nic, uplink)
        latency, links = topology.path(0, topology.ranks - 1)
        slowest = min((topology.capacities[link] for link in links), default=topology.nic[1])
        return cls(latency, 1 / slowest, gamma, topology)

    @staticmethod
    def of(network: str | Network | None) -> Network | None:
        """The network itself, or the preset of that name; None stays None."""
        if network is None or isinstance(network, Network):
            return network
        if isinstance(network, str):
            return Network.preset(network)
        raise TypeError(f"network must be a cluster.Network or the name of a preset, got {type(network).__name__}")

    @property
    def ranks(self) -> int | None:
        """How many ranks have a place in it; None for any number."""
        return None if self.topology is None else self.topology.ranks

    def check(self, nodes: int) -> None:
        """Raise ValueError when so many nodes have no place in this network."""
        if self.ranks is not None and nodes > self.ranks:
            raise ValueError(
                f"{nodes} nodes have no place in {self!r}, which has {self.ranks}: add racks, or ranks to them"
            )

    def time(self, nbytes: float) -> float:
        """Seconds for one message of so many bytes, alone (in a tree: on the longest path)."""
        return self.alpha + nbytes * self.beta

    @property
    def residuals(self) -> tuple[tuple[int, float], ...]:
        """For a fitted network: (bytes, measured / modelled time - 1) for each of the measured sizes."""
        return tuple((nbytes, seconds / self.time(nbytes) - 1) for nbytes, seconds in self.measured)

    def __repr__(self) -> str:
        gamma = f", gamma={self.gamma}" if self.gamma else ""
        if self.topology is None:
            return f"Network(alpha={self.alpha}, beta={self.beta}{gamma})"
        tree = self.topology
        return f"Network.tree({tree.racks}, {tree.per_rack}, nic={tree.nic}, uplink={tree.uplink}{gamma})"


def _seconds(name: str, unit: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number ({unit}), got {value!r}")
    if not 0 <= float(value) < math.inf:
        raise ValueError(f"{name} must be a finite number of {unit}, at least 0, got {value!r}")
    return float(value)
