"""The engine, the network and the speed of the nodes that a user chooses by options."""

from __future__ import annotations

import math

from minidl import cluster
from minidl.arguments import one_of, real_number
from minidl.cli import mpi_job
from minidl.cli.quantities import counted
from minidl.cluster.cost.network import PRESETS, Network
from minidl.cluster.engines.processes.shared_page import MAX_NODES as MOST_PROCESSES
from minidl.cluster.engines.protocol import Engine

ENGINES = ("processes", "simulation", "mpi")
REAL = ("processes", "mpi")  # where messages take real time
NO_NETWORK = "none"
FLOPS_PER_S, BYTES_PER_S = 1e9, 1e10  # of a simulated node: slow enough for small models to have something to compute
MOST_SIMULATED = 1024  # nodes of a job, or in racks, whose messages are simulated one by one
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
    """The preset of that name, or the network in that file, whose name ends in .json; None for "none"."""
    if name.lower().endswith(".json"):
        return Network.load(name)
    hint = "or give a file .json"
    name = one_of("network", name.lower(), (*PRESETS, NO_NETWORK), hint)
    return None if name == NO_NETWORK else Network.preset(name)


def check_network(option: str, name: str, on: str) -> None:
    """Raise ValueError for an unknown network, or for one with MPI, whose messages cross a real network."""
    if network_of(name) is not None and on == "mpi":
        raise ValueError(f"{option} {name} and --on mpi: MPI's messages cross a real network; leave out {option}")


def engine_of(on: str, node: cluster.Node | None = None, trace: str = "full") -> str | Engine:
    """The engine. A simulation has nodes like `node`, by default `simulated_node()`."""
    return cluster.Simulation(node=node or simulated_node(), trace=trace) if on == "simulation" else on


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
