"""Where a run takes place, as it is typed: processes of this machine or simulated nodes, and the network between."""

from __future__ import annotations

from minidl import cluster
from minidl.cluster.engines.processes.shared_page import MAX_NODES as MOST_PROCESSES
from minidl.cluster.engines.protocol import Engine
from minidl.cluster.network import PRESETS, Network
from minidl.data.checks import one_of

ENGINES = ("processes", "simulation")
NO_NETWORK = "none"
FLOPS_PER_S, BYTES_PER_S = 1e9, 1e10  # of a simulated node: slow enough for small models to have something to compute
MOST_SIMULATED = 1024
LONGEST = 1e12  # virtual seconds


def check(on: str, nodes: int, servers: int = 0) -> None:
    """Raise ValueError for an engine that does not exist, or has no room for so many nodes and servers."""
    one_of("place to run --on", on, ENGINES)
    most, where = (MOST_PROCESSES, "run on one machine") if on == "processes" else (MOST_SIMULATED, "are simulated")
    if nodes + servers > most:
        besides = f" and {servers} server{'s' * (servers > 1)}" if servers else ""
        raise ValueError(f"at most {most} nodes {where}, got --nodes {nodes}{besides}")


def network_of(name: str) -> Network | None:
    """The preset of that name; None for "none"."""
    name = one_of("network", name.lower(), (*PRESETS, NO_NETWORK))
    return None if name == NO_NETWORK else Network.preset(name)


def engine_of(on: str, node: cluster.Node | None = None, trace: str = "full") -> str | Engine:
    """The engine; where it is a simulation, with such nodes: by default those of `simulated_node`."""
    return on if on == "processes" else cluster.Simulation(node=node or simulated_node(), trace=trace)


def timeout_of(on: str) -> float:
    """Seconds that a node may wait in one operation; virtual ones may be many."""
    return 60.0 if on == "processes" else LONGEST


def simulated_node(flops: float = FLOPS_PER_S, memory: float = BYTES_PER_S, jitter: float = 0.0) -> cluster.Node:
    """A node of that speed; ValueError where it is none."""
    for flag, value in (("--flops", flops), ("--memory", memory)):
        if not value > 0:
            raise ValueError(f"{flag} must be a number above 0, got {value}")
    if not 0 <= jitter < float("inf"):
        raise ValueError(f"--jitter must be a number of at least 0, got {jitter}")
    return cluster.Node(flops, memory, jitter)


def node_text(node: cluster.Node) -> str:
    """Its speed in words.

    >>> node_text(simulated_node(jitter=0.1))
    'nodes of 1e+09 FLOP/s and 1e+10 bytes/s, jitter 0.1'
    """
    jitter = f", jitter {node.jitter:g}" if node.jitter else ""
    return f"nodes of {node.flops_per_s:.3g} FLOP/s and {node.bytes_per_s:.3g} bytes/s{jitter}"
