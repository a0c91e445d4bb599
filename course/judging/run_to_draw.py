"""A simulated run of a student's answer for a picture: the run, or a printed sentence that says why there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidl import cluster

DEADLINE = 60.0  # seconds; the first run on a computer compiles kernels


def run_to_draw(
    program: Callable[..., Any], *, nodes: int, network: str | cluster.Network, args: tuple[Any, ...] = ()
) -> cluster.Run | None:
    """`program(comm, *args)` on simulated nodes, each a process of its own.

    If the answer in it fails, or is not written yet, print that, and return None.
    """
    try:
        simulation = cluster.Simulation(network=network, isolated=True)
        return cluster.launch(program, args=args, nodes=nodes, on=simulation, deadline=DEADLINE)
    except cluster.ClusterError as error:
        not_written = isinstance(error.cause, NotImplementedError)
        print("Nothing to draw: " + ("not written yet." if not_written else str(error).splitlines()[0]))
        return None
