"""A command that mpiexec or srun has started several times: its copies join, and rank 0 speaks for all."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TypeVar

from minidl import mpiexec

_T = TypeVar("_T")


def is_silent() -> bool:
    """Whether another copy of this command speaks."""
    return mpiexec.started_this_process() and mpiexec.rank() > 0


def begin() -> None:
    """Let only rank 0 print; call it before anything is printed. Errors that nobody expects are printed by all."""
    if is_silent():
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # until the process ends


def check(on: str) -> None:
    """Raise ValueError or ImportError unless the copies of this command, if there are several, can join by `on`."""
    copies = mpiexec.size()
    if not mpiexec.started_this_process():
        if copies not in (None, 1):
            raise ValueError(
                f"srun has started this command {copies} times, and the copies do not know each other: "
                "give srun --mpi=pmi2, and the command --on mpi"
            )
        return
    if on != "mpi" and copies != 1:
        raise ValueError(
            f"mpiexec has started this command {copies or 'several'} times: give --on mpi, and the copies become the "
            "nodes of one run; or start it without mpiexec"
        )
    if on == "mpi" and find_spec("mpi4py") is None:
        raise ModuleNotFoundError("--on mpi needs mpi4py and an MPI library: pip install 'minidl[mpi]'")


def check_size(nodes: int, servers: int) -> None:
    """Raise ValueError if mpiexec has started another number of ranks than there are nodes and servers."""
    copies = mpiexec.size() if mpiexec.started_this_process() else None
    if copies not in (None, nodes + servers):
        and_servers = f" and {servers} of servers" if servers else ""
        raise ValueError(
            f"--nodes {nodes} needs {nodes} ranks{and_servers}, and mpiexec has started {copies}: give mpiexec "
            f"-n {nodes + servers}, or --nodes {max(copies - servers, 1)}"
        )


def nodes_by_mpiexec(servers: int) -> int | None:
    """The nodes that a run has if --nodes is left out: all ranks but the servers; None outside mpiexec."""
    copies = mpiexec.size() if mpiexec.started_this_process() else None
    return None if copies is None else max(copies - servers, 1)


def on_all_ranks(function: Callable[[], _T], on: str) -> _T:
    """`function()`, called by every copy. If it fails on one, the error of the lowest such rank is raised on all."""
    if on != "mpi" or not mpiexec.started_this_process():
        return function()
    from minidl.cluster.engines.mpi.agreement import agreed

    return agreed(function)
