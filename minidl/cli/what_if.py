"""What if: one collective, simulated by each algorithm, on each network, for each size and number of nodes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minidl.cli.quantities import size_text
from minidl.cluster import Communicator, Run, cost, launch
from minidl.cluster.collectives import ALL_REDUCE
from minidl.cluster.collectives.partition import split
from minidl.cluster.cost.network import Network
from minidl.cluster.engines.simulation import Simulation
from minidl.cluster.phantom import Phantom

DTYPE = np.dtype(np.float32)  # what is reduced: numbers as gradients have them
AUTO = "auto"
LONGEST = 1e12  # seconds


@dataclass(frozen=True)
class Case:
    """One collective call to be simulated."""

    collective: str
    algorithm: str
    network_name: str
    network: Network
    nbytes: int
    nodes: int

    @property
    def chosen(self) -> str:
        """The algorithm, or the one that "auto" stands for here."""
        if self.collective == "all_reduce" and self.algorithm == AUTO:
            return cost.best_all_reduce(self.nodes, self.nbytes, self.network, itemsize=DTYPE.itemsize)
        return self.algorithm

    def formula(self) -> float:
        """Seconds by the formula of `cluster.cost`."""
        p, nbytes, network = self.nodes, self.nbytes, self.network
        alpha, beta, gamma = network.alpha, network.beta, network.gamma
        match self.collective:
            case "all_reduce":
                return cost.all_reduce(self.algorithm, p, nbytes, alpha, beta, gamma, DTYPE.itemsize)
            case "reduce_scatter":
                return cost.reduce_scatter(p, nbytes, alpha, beta, gamma, DTYPE.itemsize)
            case "reduce":
                return cost.reduce(p, nbytes, alpha, beta, gamma)
            case "broadcast":
                return cost.broadcast(p, nbytes, alpha, beta)
            case "barrier":
                return cost.barrier(p, alpha)
        spread = {
            "all_gather": cost.all_gather,
            "gather": cost.gather,
            "scatter": cost.scatter,
            "all_to_all": cost.all_to_all,
        }
        return spread[self.collective](p, nbytes, alpha, beta, DTYPE.itemsize)

    def __str__(self) -> str:
        name = self.algorithm if self.algorithm == self.chosen else f"{self.algorithm}, {self.chosen}"
        return f"{self.collective} ({name}) of {size_text(self.nbytes)} on {self.nodes} nodes, {self.network_name}"

    def simulate(self, trace: str = "ledger") -> Run:
        """Run the call on a simulated cluster whose nodes compute in no time."""
        return launch(
            program,
            args=(self.collective, self.nbytes, self.algorithm),
            nodes=self.nodes,
            on=Simulation(trace=trace),
            network=self.network,
            timeout=LONGEST,  # virtual seconds: whoever asks what if may ask for a day
        )


@dataclass(frozen=True)
class Outcome:
    """What came of a case; messages and bytes are those that the busiest rank sent."""

    case: Case
    chosen: str
    seconds: float
    formula: float
    messages: int
    nbytes_sent: int


def cases(
    collective: str,
    algorithms: Sequence[str],
    networks: Sequence[tuple[str, Network]],
    sizes: Sequence[int],
    nodes: Sequence[int],
) -> list[Case]:
    """Every combination, those that are to be compared with each other next to each other."""
    return [
        Case(collective, algorithm, name, network, nbytes, count)
        for (name, network), nbytes, count, algorithm in itertools.product(networks, sizes, nodes, algorithms)
    ]


def outcome(case: Case) -> Outcome:
    """Simulate the case."""
    run = case.simulate()
    sent = [traffic[case.collective] for traffic in run.trace.ledger() if case.collective in traffic]
    return Outcome(
        case,
        case.chosen,
        run.seconds,
        case.formula(),
        max((traffic.messages for traffic in sent), default=0),
        max((traffic.nbytes for traffic in sent), default=0),
    )


# ---- the programs of the ranks: x is the whole vector, of which each rank has all, or its part ----

PROGRAMS: dict[str, Callable[[Communicator, Any, str], object]] = {
    "all_reduce": lambda comm, x, algorithm: comm.all_reduce(x, algorithm=algorithm),
    "broadcast": lambda comm, x, algorithm: comm.broadcast(x),
    "reduce": lambda comm, x, algorithm: comm.reduce(x),
    "reduce_scatter": lambda comm, x, algorithm: comm.reduce_scatter(x),
    "all_gather": lambda comm, x, algorithm: comm.all_gather(split(x, comm.size)[comm.rank]),
    "gather": lambda comm, x, algorithm: comm.gather(split(x, comm.size)[comm.rank]),
    "scatter": lambda comm, x, algorithm: comm.scatter(split(x, comm.size)),
    "all_to_all": lambda comm, x, algorithm: comm.all_to_all(split(x, comm.size)),
    "barrier": lambda comm, x, algorithm: comm.barrier(),
}

ALGORITHMS: dict[str, Sequence[str]] = {
    "all_reduce": (*ALL_REDUCE, AUTO),
    "broadcast": ("tree",),
    "reduce": ("tree",),
    "reduce_scatter": ("ring",),
    "all_gather": ("ring",),
    "gather": ("linear",),
    "scatter": ("linear",),
    "all_to_all": ("pairwise",),
    "barrier": ("dissemination",),
}
"""By which algorithms each collective can be done; one where there is nothing to choose."""


def program(comm: Communicator, collective: str, nbytes: int, algorithm: str) -> None:
    """What every rank does: one call, on an array without contents."""
    PROGRAMS[collective](comm, Phantom(nbytes, DTYPE), algorithm)
