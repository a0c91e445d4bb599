"""`MPI`, the engine: it runs the program on the ranks of this MPI job, or starts mpiexec where there is none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from minidl import mpiexec
from minidl.arguments import real_number
from minidl.cluster.engines.mpi import environment
from minidl.cluster.engines.protocol import LaunchTerms, Program
from minidl.cluster.run import Run


@dataclass(frozen=True)
class MPI:
    """Ranks under MPI (mpi4py); the engine that `on="mpi"` means.

    In a script that mpiexec has started, `launch` runs the program on the ranks of that job and returns the Run on
    every one; `nodes` must be their number. In any other process it starts mpiexec on this machine.

    Parameters
        debug         compare the ranks' collectives, at the cost of one message to every rank of the group for each; a
                      difference raises CollectiveMismatch
        trace_events  how many events each rank keeps

    Raises
        ValueError  for `on_failure="continue"`, because an MPI job does not continue without a rank; for a `network`,
                    because the messages already cross a real one
        CommTimeout for a deadlock of several ranks, after `timeout` seconds

    >>> cluster.launch(program, nodes=4, on=cluster.MPI(debug=True))  # doctest: +SKIP
    """

    debug: bool = False
    trace_events: int = 20_000

    def __post_init__(self) -> None:
        real_number("trace_events", self.trace_events, at_least=0, at_most=math.inf)

    def run(self, program: Program, args: tuple[Any, ...], terms: LaunchTerms) -> Run:
        if terms.on_failure == "continue":
            raise ValueError(
                "on_failure='continue' is not possible under MPI, which ends with the first rank that fails"
            )
        if terms.network is not None:
            raise ValueError("under MPI messages cross a real network: leave network= away, or use another engine")
        if environment.runs_program:
            raise RuntimeError("a rank cannot launch ranks of its own: call launch() where the run was started")
        if mpiexec.started_this_process():
            from minidl.cluster.engines.mpi.inside import run_inside_mpiexec

            return run_inside_mpiexec(program, args, terms, trace_events=self.trace_events, debug=self.debug)
        from minidl.cluster.engines.mpi.launcher import run_under_mpiexec

        return run_under_mpiexec(program, args, terms, trace_events=self.trace_events, debug=self.debug)
