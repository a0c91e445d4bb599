"""The cost of messages: alpha + n beta seconds, or a tree of racks with shared links; networks that have a name."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from minidl.arguments import one_of, real_number, whole_number


class Preset(NamedTuple):
    """A named network: seconds per message, seconds per byte, and the source of both."""

    alpha: float
    beta: float
    source: str


# Alpha: the order of half a small message's round trip between two programs. Beta: 8 / (bits per second of the line).
# Gamma is 0, because the speed of reductions depends on the node.
PRESETS = {
    "1gbe": Preset(
        50e-6, 8 / 1e9, "TCP between PCs through a switch: 23 us is a good result of NetPIPE, 50 us a common one"
    ),
    "10gbe": Preset(
        20e-6,
        8 / 10e9,
        "TCP, end to end: Hurwitz and Feng, Initial end-to-end performance evaluation of 10-Gigabit Ethernet (2003)",
    ),
    "100gbe": Preset(
        10e-6, 8 / 100e9, "TCP on a fast server in one data centre: a round figure of that order, not a measurement"
    ),
    "infiniband": Preset(
        1e-6,
        8 / 200e9,
        "HDR, 200 Gbit/s; between MPI programs on CPUs about 1 us, as for years: a manual of QLogic InfiniPath shows "
        "1.06 us by osu_latency",
    ),
    "nvlink": Preset(
        1.9e-6,
        1 / 450e9,
        "NVLink 4 of an H100, 450 GB/s each way; 1.9 us is a step of NCCL's ring between kernels on GPUs (src/graph/"
        "tuning.cc, LL128), which costs more than InfiniBand's message between CPUs, though the line is faster",
    ),
}


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
        hint = "or give a file .json, or make a cluster.Network(alpha, beta)"
        return cls(*PRESETS[one_of("network", known, PRESETS, hint)][:2])

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
        """Return a Network: itself, the one in a file whose name ends in .json, or the preset. None stays None."""
        if network is None or isinstance(network, Network):
            return network
        if isinstance(network, str) and network.lower().endswith(".json"):
            return Network.load(network)
        if isinstance(network, str):
            return Network.preset(network)
        raise TypeError(f"network must be a cluster.Network or the name of a preset, got {type(network).__name__}")

    @staticmethod
    def load(path: str | Path) -> Network:
        """Return the network in a JSON file.

        The file has the keys alpha and beta, and gamma if it is not 0; or, for a tree, racks, per_rack, nic and uplink,
        the last two with the keys latency and bytes_per_second. "source" says where the numbers come from.

        Raises
            OSError      the file cannot be read
            ValueError   it describes no network
        """
        from minidl.cluster.cost import network_file  # here, because pydantic is slow to import

        read = network_file.read(path)
        if isinstance(read, network_file.FlatFields):
            return Network(read.alpha, read.beta, read.gamma, measured=tuple(read.measured))
        nic, uplink = ((link.latency, link.bytes_per_second) for link in (read.nic, read.uplink))
        return Network.tree(read.racks, read.per_rack, nic, uplink, read.gamma)

    def save(self, path: str | Path, source: str = "") -> None:
        """Write a JSON file that `load` reads and whose path may replace a network's name. Raises OSError.

        source: where the numbers come from; it is kept in the file.
        """
        from minidl.cluster.cost import network_file as files  # here, because pydantic is slow to import

        tree, fields = self.topology, dict[str, Any](gamma=self.gamma, source=source)
        if tree is None:
            flat = files.FlatFields(alpha=self.alpha, beta=self.beta, measured=list(self.measured), **fields)
            return files.write(flat, path)
        nic, uplink = (files.LinkFields(latency=link[0], bytes_per_second=link[1]) for link in (tree.nic, tree.uplink))
        return files.write(
            files.TreeFields(racks=tree.racks, per_rack=tree.per_rack, nic=nic, uplink=uplink, **fields), path
        )

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
