"""The engine of MPI: the same program under mpiexec, on one machine or on many."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from minidl.cluster.engines.protocol import Program, Terms
from minidl.cluster.run import Run

STARTED = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")  # what mpiexec tells its processes, each in its own way

is_rank = False  # whether this process is running a program of a launch


@dataclass(frozen=True)
class MPI:
    """Ranks under MPI (mpi4py); the engine that `on="mpi"` means.

    In a script that was started by mpiexec, `launch` runs the program on the ranks that are there, whose number `nodes`
    must match, and every rank gets the Run. Otherwise it starts mpiexec on this machine. debug: ranks tell each other
    which collective they are about to make, at the price of a message to every rank of the group; a mismatch raises
    CollectiveMismatch. trace_events: how many events each rank keeps.

    A deadlock of several ranks is found by `timeout`. Errors: ValueError for `on_failure="continue"`, because MPI does
    not go on without a rank, and for a `network`, because the messages cross a real one.

    >>> cluster.launch(program, nodes=4, on=cluster.MPI(debug=True))  # doctest: +SKIP
    """

    debug: bool = False
    trace_events: int = 20_000

    def __post_init__(self) -> None:
        if self.trace_events < 0:
            raise ValueError(f"trace_events must be at least 0, got {self.trace_events}")

    def run(self, program: Program, args: tuple[Any, ...], terms: Terms) -> Run:
        if terms.on_failure == "continue":
            raise ValueError(
                "on_failure='continue' is not possible under MPI, which ends with the first rank that fails"
            )
        if terms.network is not None:
            raise ValueError("under MPI messages cross a real network: leave network= away, or use another engine")
        if is_rank:
            raise RuntimeError("a rank cannot launch ranks of its own: call launch() where the run was started")
        if any(name in os.environ for name in STARTED):
            from minidl.cluster.engines.mpi.inside import run_inside_mpiexec

            return run_inside_mpiexec(program, args, terms, trace_events=self.trace_events, debug=self.debug)
        from minidl.cluster.engines.mpi.launcher import run_under_mpiexec

        return run_under_mpiexec(program, args, terms, trace_events=self.trace_events, debug=self.debug)
