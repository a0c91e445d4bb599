"""The cost of messages: a start-up time and a time per byte, or a tree of racks with shared links."""

from __future__ import annotations

from dataclasses import dataclass, field

from minidl.arguments import one_of, real_number
from minidl.cluster.cost.topology import Tree

# Alpha: the order of half a small message's round trip between two programs. Beta: 8 / (bits per second of the line).
# Gamma is 0, because the speed of reductions depends on the node.
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
    """The cost of a message of n bytes between two ranks: alpha + n beta seconds.

    Parameters
        alpha      seconds per message
        beta       seconds per byte
        gamma      seconds per byte of a reduction
        topology   a tree of racks, from `Network.tree`; None: every rank is connected to every other
        measured   pairs (bytes, seconds per message) to which `calibrate` fitted the network; see `residuals`

    Every rank has one output port and one input port (full duplex, single port). A transfer occupies the sender's
    output and the receiver's input for its whole time. In a tree there are links instead of ports, and concurrent
    messages share them.

    Raises TypeError or ValueError for anything but finite numbers that are at least 0.

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
        for name, unit in (("alpha", "message"), ("beta", "byte"), ("gamma", "byte")):
            object.__setattr__(self, name, real_number(f"{name} (seconds per {unit})", getattr(self, name), at_least=0))

    @classmethod
    def preset(cls, name: str) -> Network:
        """Return the network called `name`: "1gbe", "10gbe", "100gbe", "infiniband" or "nvlink"."""
        known = name.lower() if isinstance(name, str) else name
        return cls(*PRESETS[one_of("network", known, PRESETS, "or make a cluster.Network(alpha, beta)")])

    @classmethod
    def tree(
        cls,
        racks: int,
        per_rack: int,
        nic: tuple[float, float],
        uplink: tuple[float, float],
        gamma: float = 0.0,
    ) -> Network:
        """Return a network of racks under one core switch, whose links concurrent messages share max-min fairly.

        Parameters
            racks      number of racks
            per_rack   nodes in each; ranks 0 ... per_rack - 1 are in rack 0, and so on
            nic        (latency in seconds, bytes per second) of each node's network card
            uplink     the same for each rack's link to the core switch
            gamma      seconds per byte of a reduction

        Cards and uplinks are full duplex. A message first waits for the latencies of its path: two cards, between racks
        also two uplinks. Then its bytes flow. alpha and beta of the result are those of a message alone on the longest
        path; `algorithm="auto"` takes the shared links into account.

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
        """Return a Network: itself, or the preset of that name. None stays None."""
        if network is None or isinstance(network, Network):
            return network
        if isinstance(network, str):
            return Network.preset(network)
        raise TypeError(f"network must be a cluster.Network or the name of a preset, got {type(network).__name__}")

    @property
    def ranks(self) -> int | None:
        """Number of ranks that the network connects; None: any number."""
        return None if self.topology is None else self.topology.ranks

    def check(self, nodes: int) -> None:
        """Raise ValueError if the network connects fewer than `nodes` ranks."""
        if self.ranks is not None and nodes > self.ranks:
            raise ValueError(
                f"{nodes} nodes have no place in {self!r}, which has {self.ranks}: add racks, or ranks to them"
            )

    def time(self, nbytes: float) -> float:
        """Seconds for one message of `nbytes` while no other is sent; in a tree, on the longest path."""
        return self.alpha + nbytes * self.beta

    @property
    def residuals(self) -> tuple[tuple[int, float], ...]:
        """For each measured size of a fitted network: (bytes, measured / modelled time - 1)."""
        return tuple((nbytes, seconds / self.time(nbytes) - 1) for nbytes, seconds in self.measured)

    def __repr__(self) -> str:
        gamma = f", gamma={self.gamma}" if self.gamma else ""
        if self.topology is None:
            return f"Network(alpha={self.alpha}, beta={self.beta}{gamma})"
        tree = self.topology
        return f"Network.tree({tree.racks}, {tree.per_rack}, nic={tree.nic}, uplink={tree.uplink}{gamma})"
