"""The cost of messages: alpha + n beta seconds, or a topology with shared links; networks that have a name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from minidl.arguments import one_of, real_number
from minidl.cluster.cost.topologies import Dragonfly, FatTree, Link, Topology, Torus, Tree
from minidl.cluster.cost.topologies.text import parse, written


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


@dataclass(frozen=True)
class Network:
    """The cost of a message of n bytes between two ranks: alpha + n beta seconds.

    Parameters
        alpha      seconds per message
        beta       seconds per byte
        gamma      seconds per byte of a reduction
        topology   links that messages share, from `Network.tree`, `torus`, `fat_tree` or `dragonfly`; None: every rank
                   is connected to every other
        measured   pairs (bytes, seconds per message) to which `calibrate` fitted the network; see `residuals`

    Every rank has one output port and one input port (full duplex, single port). A transfer occupies the sender's
    output and the receiver's input for its whole time. In a topology there are links instead of ports, and concurrent
    messages share them max-min fairly: a message first waits for the latencies of its links, then its bytes flow.

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
    topology: Topology | None = None
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
        nic: Link,
        uplink: Link,
        gamma: float = 0.0,
    ) -> Network:
        """Return a network of racks under one core switch, whose links concurrent messages share max-min fairly.

        Parameters
            racks      number of racks
            per_rack   nodes in each; ranks 0 ... per_rack - 1 are in rack 0, and so on
            nic        (latency in seconds, bytes per second) of each node's network card
            uplink     the same for each rack's link to the core switch
            gamma      seconds per byte of a reduction

        Cards and uplinks are full duplex. The path within a rack is two cards, between racks also two uplinks. alpha
        and beta of the result are those of a message alone on the longest path; `algorithm="auto"` takes the shared
        links into account.

        >>> network = Network.tree(2, 4, nic=(1e-6, 1e9), uplink=(5e-6, 2e9))
        >>> network.ranks, network.alpha, network.beta
        (8, 1.2e-05, 1e-09)
        """
        return cls.over(Tree(racks, per_rack, nic, uplink), gamma)

    @classmethod
    def torus(cls, dimensions: tuple[int, ...], link: Link, gamma: float = 0.0) -> Network:
        """Return a grid of nodes whose dimensions are closed to rings; all links are (latency, bytes per second).

        The settings and the routes are those of `cluster/cost/topologies/torus.py`.

        >>> Network.torus((4, 4, 2), link=(1e-6, 12.5e9)).ranks
        32
        """
        return cls.over(Torus(dimensions, link), gamma)

    @classmethod
    def fat_tree(
        cls,
        down: tuple[int, ...],
        up: tuple[int, ...] = (),
        parallel: tuple[int, ...] = (),
        *,
        link: Link,
        gamma: float = 0.0,
    ) -> Network:
        """Return levels of switches, each with several ways up; all links are (latency, bytes per second).

        The settings and the routes are those of `cluster/cost/topologies/fat_tree.py`. By default no level is a
        bottleneck; here a switch of eight nodes has two cables upwards, a quarter of what its nodes can send:

        >>> Network.fat_tree((8, 4), up=(1, 2), link=(1e-6, 12.5e9)).ranks
        32
        """
        return cls.over(FatTree(down, up, parallel, link=link), gamma)

    @classmethod
    def dragonfly(
        cls,
        sizes: tuple[int, int, int, int],
        cables: tuple[int, int, int] = (1, 1, 1),
        *,
        link: Link,
        gamma: float = 0.0,
    ) -> Network:
        """Return groups of chassis of routers of nodes, a cable between any two groups; a link is one of a cable.

        The settings and the routes are those of `cluster/cost/topologies/dragonfly.py`.

        >>> Network.dragonfly((9, 2, 4, 2), link=(1e-6, 12.5e9)).ranks
        144
        """
        return cls.over(Dragonfly(sizes, cables, link=link), gamma)

    @classmethod
    def over(cls, topology: Topology, gamma: float = 0.0) -> Network:
        """Return the network of a topology; alpha and beta are those of a message alone on its longest route."""
        paths = [topology.path(topology.ranks - 1, dst) for dst in range(topology.ranks)]
        # in none of the topologies a longer route begins elsewhere
        latency, links = max(paths, key=lambda path: (path[0], len(path[1])))
        slowest = min((topology.capacities[link] for link in links), default=topology.capacities[0])
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
        the last two with the keys latency and bytes_per_second; or topology, such as "torus:4x4x2", and link. "source"
        says where the numbers come from.

        Raises
            OSError      the file cannot be read
            ValueError   it describes no network
        """
        from minidl.cluster.cost import network_file  # here, because pydantic is slow to import

        read = network_file.read(path)
        if isinstance(read, network_file.FlatFields):
            return Network(read.alpha, read.beta, read.gamma, measured=tuple(read.measured))
        if isinstance(read, network_file.TopologyFields):
            try:
                return Network.over(parse(read.topology, [read.link.pair()]), read.gamma)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from None
        return Network.tree(read.racks, read.per_rack, read.nic.pair(), read.uplink.pair(), read.gamma)

    def save(self, path: str | Path, source: str = "") -> None:
        """Write a JSON file that `load` reads and whose path may replace a network's name. Raises OSError.

        source: where the numbers come from; it is kept in the file.
        """
        from minidl.cluster.cost import network_file as files  # here, because pydantic is slow to import

        topology, fields = self.topology, dict[str, Any](gamma=self.gamma, source=source)
        if topology is None:
            flat = files.FlatFields(alpha=self.alpha, beta=self.beta, measured=list(self.measured), **fields)
            return files.write(flat, path)
        if isinstance(topology, Tree):
            nic, uplink = map(files.LinkFields.of, (topology.nic, topology.uplink))
            tree = files.TreeFields(racks=topology.racks, per_rack=topology.per_rack, nic=nic, uplink=uplink, **fields)
            return files.write(tree, path)
        link = files.LinkFields.of(topology.links[0])
        return files.write(files.TopologyFields(topology=written(topology), link=link, **fields), path)

    @property
    def ranks(self) -> int | None:
        """Number of ranks that the network connects; None: any number."""
        return None if self.topology is None else self.topology.ranks

    def check(self, nodes: int) -> None:
        """Raise ValueError if the network connects fewer than `nodes` ranks."""
        if self.ranks is not None and nodes > self.ranks:
            raise ValueError(f"{nodes} nodes have no place in {self!r}, which has {self.ranks}: make it larger")

    def time(self, nbytes: float) -> float:
        """Seconds for one message of `nbytes` while no other is sent; in a topology, on the longest path."""
        return self.alpha + nbytes * self.beta

    @property
    def residuals(self) -> tuple[tuple[int, float], ...]:
        """For each measured size of a fitted network: (bytes, measured / modelled time - 1)."""
        return tuple((nbytes, seconds / self.time(nbytes) - 1) for nbytes, seconds in self.measured)

    def __repr__(self) -> str:
        gamma = f", gamma={self.gamma}" if self.gamma else ""
        if self.topology is None:
            return f"Network(alpha={self.alpha}, beta={self.beta}{gamma})"
        return f"{repr(self.topology)[:-1]}{gamma})"
