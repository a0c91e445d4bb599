"""The calls of `minidl simulate --measured`, made for real: on processes of this machine, or on the ranks of MPI."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from minidl.cli.simulate.cases import DTYPE, Algorithm, SimulatedCase, carried_out_by, program
from minidl.cluster import Communicator, launch

REPETITIONS = 7  # of each call, after one that is not counted


def measured(runs: Sequence[SimulatedCase], on: str) -> Iterator[SimulatedCase]:
    """The same cases, each with the seconds of its repetitions; one launch for each size and number of nodes."""
    for (_, nodes), group in groupby(runs, lambda run: (run.case.nbytes, run.case.nodes)):
        of_these = list(group)
        choices = [run.case.choice for run in of_these]
        calls = [
            (run.case.collective, run.case.nbytes, carried_out_by(name), options)
            for run, (name, options) in zip(of_these, choices, strict=True)
        ]
        of_each_rank = launch(timed, args=(calls,), nodes=nodes, on=on, timeout=60.0).results
        last = np.max(of_each_rank, axis=0)  # a call has ended when its last rank has
        for run, seconds in zip(of_these, last, strict=True):
            yield replace(run, measured=tuple(map(float, seconds)))


def timed(comm: Communicator, calls: Sequence[tuple[str, int, Algorithm, dict[str, Any]]]) -> list[list[float]]:
    """The seconds of each repetition of each call on this rank, from a barrier to the end of the call."""
    return [_repeated(comm, *call) for call in calls]


def _repeated(
    comm: Communicator, collective: str, nbytes: int, algorithm: Algorithm, options: dict[str, Any]
) -> list[float]:
    x, times = np.ones(nbytes // DTYPE.itemsize, DTYPE), []
    for _ in range(1 + REPETITIONS):
        comm.barrier()
        began = comm.now()
        program(comm, collective, x, algorithm, options)
        times.append(comm.now() - began)
    return times[1:]
