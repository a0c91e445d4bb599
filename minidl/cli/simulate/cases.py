"""Cases of `minidl simulate`, one per algorithm, network, size and number of nodes: simulated, or made for real."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np

from minidl.cli.engines import LONGEST
from minidl.cli.quantities import size_text
from minidl.cluster import Communicator, Run, cost, launch
from minidl.cluster.collectives import ALL_REDUCE
from minidl.cluster.collectives.partition import group_size
from minidl.cluster.cost import shared_links
from minidl.cluster.cost.network import Network
from minidl.cluster.engines.simulation import Simulation
from minidl.cluster.phantom import Phantom

DTYPE = np.dtype(np.float32)  # of the vector, as of gradients
REPETITIONS = 7  # of each call that is made for real, after one that is not counted
AUTO, HIERARCHICAL = "auto", "hierarchical"
ALL_REDUCES = (*ALL_REDUCE, AUTO)
Algorithm = str | Callable[..., Any]
IMPORTED_ALL_REDUCES: dict[str, Callable[..., Any]] = {}
"""All-reduces that `--import` has brought, by the name that `--algorithm` takes."""


@dataclass(frozen=True)
class Case:
    """One collective call.

    per_group: ranks in a group of the hierarchical all-reduce; None: see `group`
    """

    collective: str
    algorithm: str
    network_name: str
    network: Network
    nbytes: int
    nodes: int
    per_group: int | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The options of this algorithm in `comm.all_reduce`."""
        return {"per_group": self.group} if self.algorithm == HIERARCHICAL else {}

    @property
    def group(self) -> int:
        """Ranks per group: per_group; or else neighbours, such as a rack; or else the divisor nearest sqrt(nodes)."""
        topology = self.network.topology
        if topology is not None and self.per_group is None and self.nodes % topology.neighbours == 0:
            return group_size(self.nodes, topology.neighbours)
        return group_size(self.nodes, self.per_group)

    @property
    def is_imported(self) -> bool:
        """Whether the algorithm is one that `--import` has brought."""
        return self.algorithm in IMPORTED_ALL_REDUCES

    @property
    def choice(self) -> tuple[str, dict[str, Any]]:
        """The algorithm and its options; for "auto", those that are chosen for this call."""
        if self.collective != "all_reduce" or self.algorithm != AUTO:
            return self.algorithm, self.options
        options: dict[str, Any] = {}
        name = cost.best_all_reduce(self.nodes, self.nbytes, self.network, itemsize=DTYPE.itemsize)
        if self.network.topology is not None:
            ranks = tuple(range(self.nodes))
            name, options = shared_links.best_all_reduce(self.network, ranks, self.nbytes, DTYPE.itemsize)
        if name == HIERARCHICAL:
            options = {"per_group": group_size(self.nodes, options.get("per_group"))}
        return name, options

    def formula(self) -> float | None:
        """Seconds by the formula in `cluster.cost`; None for an algorithm of one's own and some on shared links."""
        if self.is_imported:
            return None
        if self.network.topology is None:
            return self.alone()
        if self.collective != "all_reduce" or self.algorithm not in (AUTO, *shared_links.ALL_REDUCE):
            return None
        return cost.all_reduce_on(self.network, self.algorithm, self.nodes, self.nbytes, DTYPE.itemsize, **self.options)

    def alone(self) -> float:
        """Seconds by the formula in which every message has a link of its own."""
        network = self.network
        given = {"algorithm": self.algorithm, "p": self.nodes, "nbytes": self.nbytes, "itemsize": DTYPE.itemsize}
        given |= {"alpha": network.alpha, "beta": network.beta, "gamma": network.gamma}
        formula = getattr(cost, self.collective)
        known = signature(formula).parameters
        return float(formula(**{name: given[name] for name in known if name in given}, **self.options))

    def named(self, separator: str) -> str:
        """The algorithm; for "auto", also the one chosen; for "hierarchical", also groups x nodes per group."""
        if self.algorithm == HIERARCHICAL:
            return f"{self.algorithm}{separator}{self.nodes // self.group} x {self.group}"
        chosen = self.choice[0]
        return self.algorithm if self.algorithm == chosen else f"{self.algorithm}{separator}{chosen}"

    def __str__(self) -> str:
        size = size_text(self.nbytes)
        return f"{self.collective} ({self.named(', ')}) of {size} on {self.nodes} nodes, {self.network_name}"

    def simulate(self, trace: str = "ledger") -> Run:
        """Run the call on a simulated cluster where computing takes no time."""
        return launch(
            program,
            args=(
                self.collective,
                Phantom(self.nbytes, DTYPE),
                IMPORTED_ALL_REDUCES.get(self.algorithm, self.algorithm),
                self.options,
            ),
            nodes=self.nodes,
            on=Simulation(trace=trace),
            network=self.network,
            timeout=LONGEST,
        )


@dataclass(frozen=True)
class SimulatedCase:
    """The result of a simulation: seconds, and the messages and bytes that the busiest rank sent.

    measured: the seconds of every repetition on a real engine, if the call was made there too.
    """

    case: Case
    seconds: float
    messages: int
    nbytes_sent: int
    measured: tuple[float, ...] = ()


def combinations(
    collective: str,
    algorithms: Sequence[str],
    networks: Sequence[tuple[str, Network]],
    sizes: Sequence[int],
    nodes: Sequence[int],
    per_group: int | None = None,
) -> list[Case]:
    """A case for every combination. Cases that differ only in the algorithm are adjacent."""
    return [
        Case(collective, algorithm, name, network, nbytes, count, per_group)
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


# ---- the call of each rank: x is the whole vector; some collectives take its slices, one per rank ----

PROGRAMS: dict[str, Callable[..., object]] = {
    "all_reduce": lambda comm, x, algorithm, options: comm.all_reduce(x, algorithm=algorithm, **options),
    "broadcast": lambda comm, x, *_: comm.broadcast(x),
    "reduce": lambda comm, x, *_: comm.reduce(x),
    "reduce_scatter": lambda comm, x, *_: comm.reduce_scatter(x),
    "all_gather": lambda comm, x, *_: comm.all_gather(np.array_split(x, comm.size)[comm.rank]),
    "gather": lambda comm, x, *_: comm.gather(np.array_split(x, comm.size)[comm.rank]),
    "scatter": lambda comm, x, *_: comm.scatter(np.array_split(x, comm.size) if comm.rank == 0 else None),
    "all_to_all": lambda comm, x, *_: comm.all_to_all(np.array_split(x, comm.size)),
    "barrier": lambda comm, *_: comm.barrier(),
}

ALGORITHMS: dict[str, Sequence[str]] = {
    "all_reduce": ALL_REDUCES,
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


def program(comm: Communicator, collective: str, x: Any, algorithm: Algorithm, options: dict[str, Any]) -> None:
    """The program of every rank: call the collective on x, in a simulation an array without contents."""
    PROGRAMS[collective](comm, x, algorithm, options)


# ---- the same calls, made for real ----


def measured(runs: Sequence[SimulatedCase], on: str) -> Iterator[SimulatedCase]:
    """The same cases, each with the seconds of its repetitions; one launch for each size and number of nodes."""
    for (_, nodes), group in itertools.groupby(runs, lambda run: (run.case.nbytes, run.case.nodes)):
        of_these = list(group)
        choices = [run.case.choice for run in of_these]
        calls = [
            (run.case.collective, run.case.nbytes, IMPORTED_ALL_REDUCES.get(name, name), options)
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
