"""Running cases in an engine: all that suit a number of ranks in one launch, because a launch of MPI takes seconds."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from minidl import cluster
from minidl.cluster import Communicator
from minidl.cluster.engines.protocol import Engine
from tests.cluster.conformance import (
    cases_all_reduce,
    cases_collectives,
    cases_groups,
    cases_kinds_of_arrays,
    cases_messages,
    cases_node,
)
from tests.cluster.conformance.registry import CASES
from tests.cluster.engines.simulation.batched.of_two_ranks import AtOnce

MODULES = (cases_messages, cases_all_reduce, cases_collectives, cases_groups, cases_kinds_of_arrays, cases_node)
TIMEOUT, DEADLINE = 60.0, 150.0

ENGINES: dict[str, Callable[[], Engine]] = {
    "processes": lambda: cluster.Processes(),
    "simulation": lambda: cluster.Simulation(network=cluster.Network(1e-4, 1e-9, 1e-10)),
    "simulation at once": lambda: AtOnce(network=cluster.Network(1e-4, 1e-9, 1e-10)),
    "mpi": lambda: cluster.MPI(),
}

HAS_MPI = importlib.util.find_spec("mpi4py") is not None
INSTALLED = [engine for engine in ENGINES if engine != "mpi" or HAS_MPI]


@dataclass
class Outcome:
    """What came of the cases in one engine with one number of ranks."""

    results: list[dict[str, Any]]  # by rank, then by case
    failures: dict[str, Exception] = field(default_factory=dict)


def program(comm: Communicator, names: list[str]) -> dict[str, Any]:
    results = {}
    for name in names:
        comm.barrier()
        comm.tell(name)
        results[name] = CASES[name].function(comm)
    return results


def outcome(engine: str, size: int) -> Outcome:
    """Run all cases that suit; one that fails is noted, and the others are run again without it."""
    names = [name for name, case in CASES.items() if case.suits(size)]
    failures: dict[str, Exception] = {}
    while True:
        begun: dict[int, str] = {}
        try:
            run = cluster.launch(
                program,
                args=(names,),
                nodes=size,
                on=ENGINES[engine](),
                timeout=TIMEOUT,
                deadline=DEADLINE,
                seed=5,
                listener=begun.__setitem__,
            )
        except cluster.ClusterError as error:
            culprit = begun.get(error.rank or 0)
            if culprit is None:
                raise
            failures[culprit] = error
            names.remove(culprit)
        else:
            return Outcome(run.results, failures)
