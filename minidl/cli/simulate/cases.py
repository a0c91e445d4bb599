"""One collective, simulated by each algorithm, on each network, for each size and number of nodes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from minidl.cli.engines import LONGEST
from minidl.cli.quantities import size_text
from minidl.cluster import Communicator, Run, cost, launch
from minidl.cluster.collectives import ALL_REDUCE
from minidl.cluster.collectives.partition import split
from minidl.cluster.cost.network import Network
from minidl.cluster.engines.simulation import Simulation
from minidl.cluster.phantom import Phantom

DTYPE = np.dtype(np.float32)  # of the vector, as of gradients
AUTO = "auto"


@dataclass(frozen=True)
class Case:
    """One collective call."""

    collective: str
    algorithm: str
    network_name: str
    network: Network
    nbytes: int
    nodes: int

    @property
    def chosen(self) -> str:
        """The algorithm, or the one that "auto" chooses for this call."""
        if self.collective == "all_reduce" and self.algorithm == AUTO:
            return cost.best_all_reduce(self.nodes, self.nbytes, self.network, itemsize=DTYPE.itemsize)
        return self.algorithm

    def formula(self) -> float:
        """Seconds, by the formula of that name in `cluster.cost`."""
        network = self.network
        given = {"algorithm": self.algorithm, "p": self.nodes, "nbytes": self.nbytes, "itemsize": DTYPE.itemsize}
        given |= {"alpha": network.alpha, "beta": network.beta, "gamma": network.gamma}
        formula = getattr(cost, self.collective)
        return float(formula(**{name: given[name] for name in signature(formula).parameters if name in given}))

    def named(self, separator: str) -> str:
        """The algorithm, and after "auto" also the one that it chooses."""
        return self.algorithm if self.algorithm == self.chosen else f"{self.algorithm}{separator}{self.chosen}"

    def __str__(self) -> str:
        size = size_text(self.nbytes)
        return f"{self.collective} ({self.named(', ')}) of {size} on {self.nodes} nodes, {self.network_name}"

    def simulate(self, trace: str = "ledger") -> Run:
        """Run the call on a simulated cluster whose nodes compute in no time."""
        return launch(
            program,
            args=(self.collective, self.nbytes, self.algorithm),
            nodes=self.nodes,
            on=Simulation(trace=trace),
            network=self.network,
            timeout=LONGEST,
        )


@dataclass(frozen=True)
class SimulatedCase:
    """The result of a simulation: seconds, and the messages and bytes that the busiest rank sent."""

    case: Case
    seconds: float
    messages: int
    nbytes_sent: int


def combinations(
    collective: str,
    algorithms: Sequence[str],
    networks: Sequence[tuple[str, Network]],
    sizes: Sequence[int],
    nodes: Sequence[int],
) -> list[Case]:
    """A case for every combination. Cases that differ only in the algorithm stand next to each other."""
    return [
        Case(collective, algorithm, name, network, nbytes, count)
        for (name, network), nbytes, count, algorithm in itertools.product(networks, sizes, nodes, algorithms)
    ]


def simulated(case: Case) -> SimulatedCase:
    """Simulate the case."""
    run = case.simulate()
    sent = [traffic[case.collective] for traffic in run.trace.ledger() if case.collective in traffic]
    return SimulatedCase(
        case,
        run.seconds,
        max((traffic.messages for traffic in sent), default=0),
        max((traffic.nbytes for traffic in sent), default=0),
    )


# ---- what each rank calls: x is the whole vector, which the rank sends whole or split by ranks ----

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
"""The algorithms of each collective; only all-reduce has several."""


def program(comm: Communicator, collective: str, nbytes: int, algorithm: str) -> None:
    """Make the call, on an array without contents. This is the program of every rank."""
    PROGRAMS[collective](comm, Phantom(nbytes, DTYPE), algorithm)
