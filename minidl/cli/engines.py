"""The engine, the network and the speed of the nodes that a user chooses by options."""

from __future__ import annotations

import math

from minidl import cluster
from minidl.arguments import one_of, real_number
from minidl.cli import mpi_job
from minidl.cli.quantities import counted, parse_bytes, parse_rate, parse_seconds
from minidl.cluster.cost.network import PRESETS, Network
from minidl.cluster.cost.topologies.text import parse
from minidl.cluster.engines.processes.shared_page import MAX_NODES as MOST_PROCESSES
from minidl.cluster.engines.protocol import Engine

ENGINES = ("processes", "simulation", "mpi")
REAL = ("processes", "mpi")  # where messages take real time
NO_NETWORK = NO_MEMORY = "none"
FLOPS_PER_S, BYTES_PER_S = 1e9, 1e10  # of a simulated node: slow enough for small models to have something to compute
MOST_SIMULATED = 1024  # nodes of a job, or of a topology, whose messages are simulated one by one
LONGEST = 1e12  # virtual seconds


def check(on: str, nodes: int, servers: int = 0) -> None:
    """Raise ValueError for an unknown engine, or for more nodes and servers than it can run."""
    one_of("--on", on, ENGINES)
    mpi_job.check(on)
    if on == "mpi":
        mpi_job.check_size(nodes, servers)
        return
    most, where = (MOST_PROCESSES, "run on one machine") if on == "processes" else (MOST_SIMULATED, "are simulated")
    if nodes + servers > most:
        and_servers = f" and {counted(servers, 'server')}" if servers else ""
        raise ValueError(f"at most {most} nodes {where}, got --nodes {nodes}{and_servers}")


def network_of(name: str) -> Network | None:
    """The network that is typed; None for "none"."""
    return None if name.lower() == NO_NETWORK else named_network(name, NO_NETWORK)


def named_network(text: str, *others: str) -> Network:
    """The preset of that name; the network in that file, whose name ends in .json; or a topology with its links.

    A topology is KIND:SIZES@LINK, such as torus:4x4x2@1us/100Gbit; the link is a latency and a speed, or like that of a
    preset, and by default of InfiniBand. Racks may have a second link, their uplink.

    Parameters
        others  other words that the user may type here, for messages

    Raises
        ValueError  says what is wrong and what there is
        OSError     a file that cannot be read
    """
    if text.lower().endswith(".json"):
        return Network.load(text)
    shape, *links = text.split("@")
    if ":" not in shape:
        hint = "or give a file .json, or a topology such as torus:4x4x2"
        return Network.preset(one_of("network", text.lower(), (*PRESETS, *others), hint))
    topology = parse(shape, [_link(text, link) for link in links or ["infiniband"]])
    if topology.ranks > MOST_SIMULATED:
        raise ValueError(f"{text} has {topology.ranks:,} nodes: at most {MOST_SIMULATED:,} are simulated")
    return Network.over(topology)


def _link(text: str, link: str) -> tuple[float, float]:
    """The link that is typed in the text of a topology."""
    if link.lower() in PRESETS:
        alpha, beta, _ = PRESETS[link.lower()]
        return alpha, 1 / beta
    latency, _, speed = link.partition("/")
    try:
        return parse_seconds(latency), parse_rate(speed)
    except ValueError as error:
        raise ValueError(f"{text}: the link {link!r} must be like 1us/100Gbit or like infiniband: {error}") from None


def check_network(option: str, name: str, on: str) -> None:
    """Raise ValueError for an unknown network, for one with MPI, and for shared links outside of a simulation."""
    network = network_of(name)
    if network is not None and on == "mpi":
        raise ValueError(f"{option} {name} and --on mpi: MPI's messages cross a real network; leave out {option}")
    if network is not None and network.topology is not None and on == "processes":
        raise ValueError(f"{option} {name} has links that messages share, which only a simulation has: --on simulation")


def engine_of(
    on: str, node: cluster.Node | None = None, trace: str = "full", memory: cluster.Memory | None = None
) -> str | Engine:
    """The engine. A simulation has nodes like `node`, by default `simulated_node()`, with that memory."""
    if on != "simulation":
        return on
    return cluster.Simulation(node=node or simulated_node(), trace=trace, memory=memory)


def memory_of(text: str) -> cluster.Memory:
    """The memory that is typed as the bytes of the device and the link to its host.

    Raises ValueError for a text that is none.

    >>> memory_of("2MB@10us/16GB")
    Memory(device=2000000.0, link=(1e-05, 16000000000.0), host=1.0)
    """
    size, _, link = text.partition("@")
    try:
        return cluster.Memory(parse_bytes(size), _link(text, link))
    except ValueError as error:
        raise ValueError(f"--device-memory must be SIZE@LATENCY/SPEED, such as 2MB@10us/16GB: {error}") from None


def timeout_of(on: str) -> float:
    """The longest time in seconds that a node waits in one operation; in a simulation, virtual seconds."""
    return LONGEST if on == "simulation" else 60.0


def check_deadline(deadline: float | None) -> None:
    """Raise ValueError unless the deadline is a number of seconds, or None."""
    if deadline is not None:
        real_number("--deadline", deadline, above=0, hint="give seconds")


def simulated_node(flops: float = FLOPS_PER_S, memory: float = BYTES_PER_S, jitter: float = 0.0) -> cluster.Node:
    """A node of that speed; ValueError names the option whose value is out of range."""
    for flag, value in (("--flops", flops), ("--memory", memory)):
        real_number(flag, value, above=0, at_most=math.inf, hint="inf means no limit")
    real_number("--jitter", jitter, at_least=0)
    return cluster.Node(flops, memory, jitter)


def node_text(node: cluster.Node) -> str:
    """The speed of a node in words.

    >>> node_text(simulated_node(jitter=0.1))
    'nodes of 1e+09 FLOP/s and 1e+10 bytes/s, jitter 0.1'
    """
    jitter = f", jitter {node.jitter:g}" if node.jitter else ""
    return f"nodes of {node.flops_per_s:.3g} FLOP/s and {node.bytes_per_s:.3g} bytes/s{jitter}"
