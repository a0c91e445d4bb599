"""Launches: a run is one launch of its ranks, or several one after the other, if it is elastic and nodes die."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minidl import cluster
from minidl.cluster.engines.protocol import Engine
from minidl.cluster.faults import FaultPlan
from minidl.cluster.run import Run
from minidl.parallel.job import Job
from minidl.parallel.plan import ParallelPlan
from minidl.parallel.run.checkpoint import CHECKPOINT_FILE
from minidl.parallel.run.elastic_restart import Elastic, Leg, Restart, next_leg, with_epochs_of_the_dead
from minidl.parallel.run.rank_record import RankRecord
from minidl.parallel.strategy import Strategy

Launch = Callable[[int, Leg, FaultPlan | None], Run]
"""Launches the ranks of that number of nodes, with the faults planned for them."""


@dataclass(frozen=True)
class Launched:
    """What the launches of a run have come to.

    run       the last launch
    nodes     number of nodes in it
    records   what its surviving ranks brought back, in the order of the ranks
    seconds   the time of all launches
    restarts  why each launch after the first was needed
    """

    run: Run
    nodes: int
    records: list[RankRecord]
    seconds: float
    restarts: list[Restart]


def launch_to_the_end(
    launch: Launch,
    job: Job,
    strategy: Strategy,
    nodes: int,
    leg: Leg,
    faults: FaultPlan | None,
    elastic: Elastic | None,
    folder: Path | None,
) -> Launched:
    """Launch the nodes; with `elastic`, launch those that are left again until the run is done.

    Parameters
        leg      the first launch
        elastic  None: one launch, whatever fails in it
        folder   where the run writes its checkpoints; None: nowhere

    Raises the failure that ends an elastic run: an error of the program, or a death that it cannot survive.
    """
    at_first, before = nodes, _file_id(folder)
    seconds, restarts = 0.0, list[Restart]()
    while True:
        run = launch(nodes, leg, faults)
        seconds += run.seconds
        survived: list[RankRecord] = [record for record in run.results if record is not None]
        records = with_epochs_of_the_dead(survived, leg.records)
        if elastic is None:
            return Launched(run, nodes, records, seconds, restarts)
        deaths = _deaths(run, records)
        if _is_done(records, strategy):
            return Launched(run, nodes, records, seconds, restarts)
        if deaths and sum(bool(restart.died) for restart in restarts) >= elastic.restarts:
            raise next(iter(deaths.values()))
        survivors = [rank for rank, record in enumerate(run.results) if record is not None]
        written = folder / CHECKPOINT_FILE if folder is not None and _file_id(folder) != before else None
        leg, restart = next_leg(strategy.resumes_from, elastic, leg, records, deaths, at_first, written, run.trace)
        restarts.append(restart)
        nodes = restart.nodes
        if faults is not None:
            replaced = strategy.resumes_from == "checkpoint"
            faults = faults.without(deaths) if replaced else faults.of_ranks(survivors)
        _check_can_go_on(strategy, job, nodes, deaths)


def check_elastic(
    strategy: Strategy, plan: ParallelPlan, elastic: Any, nodes: int, on_failure: str, on: str | Engine
) -> Elastic | None:
    """The settings of an elastic run, or None; raises if a run by this strategy cannot go on with other nodes."""
    if elastic is False:
        return None
    name, elastic = type(strategy).__name__, Elastic() if elastic is True else elastic
    if not isinstance(elastic, Elastic):
        raise TypeError(f"elastic must be True, False or a parallel.Elastic, got {elastic!r}")
    if "mpi" in (on, type(on).__name__.lower()):
        raise ValueError('elastic runs need an engine whose ranks outlive each other: MPI ends all; use on="processes"')
    if on_failure != "raise":
        raise ValueError('elastic runs go on when a node dies: leave out on_failure="continue"')
    if plan.is_split and not strategy.servers and strategy.resumes_from != "checkpoint":
        raise ValueError(
            f"{name} splits the model, so the weights of a dead node are lost: leave out elastic, and resume from a "
            "checkpoint"
        )
    if not strategy.resumes_from:
        finishes = strategy.servers or getattr(strategy, "asynchronous", False)  # as asynchronous Gossip
        hint = 'on_failure="continue" lets the other workers finish' if finishes else "use Synchronous()"
        raise ValueError(f"elastic: {name} cannot go on with other nodes when one dies: {hint}")
    if elastic.min_nodes > nodes:
        raise ValueError(f"Elastic: min_nodes={elastic.min_nodes}, but the run begins with {nodes} nodes")
    return elastic


def _deaths(run: Run, records: list[RankRecord]) -> dict[int, cluster.ClusterError]:
    """The failures of a launch that are deaths, which others may have had to end for.

    Raises the first one that is something else: an error of the program would come again.
    """
    deaths: dict[int, cluster.ClusterError] = {
        rank: failure
        for rank, failure in run.failures.items()
        if failure.cause is None and isinstance(failure, cluster.RankFailed)
    }
    for rank, failure in run.failures.items():
        is_consequence = deaths and isinstance(failure.cause, (cluster.RankFailed, cluster.Deadlock))
        if rank not in deaths and not is_consequence:
            raise failure
    for record in records:
        if record.interrupted is not None and not run.failures:  # by a deadlock of its own
            record.interrupted.trace = run.trace
            raise record.interrupted
    return deaths


def _is_done(records: list[RankRecord], strategy: Strategy) -> bool:
    """Whether the run has ended: no rank is to go on, and where one rank alone has the final state, it has survived."""
    if strategy.resumes_from == "checkpoint":
        return any(record.state is not None for record in records)
    return bool(records) and not any(record.is_unfinished for record in records)


def _file_id(folder: Path | None) -> tuple[int, int] | None:
    """What changes whenever a checkpoint is written to the folder; None without one."""
    path = None if folder is None else folder / CHECKPOINT_FILE
    if path is None or not path.exists():
        return None
    return path.stat().st_ino, path.stat().st_mtime_ns


def _check_can_go_on(strategy: Strategy, job: Job, nodes: int, failures: dict[int, cluster.ClusterError]) -> None:
    """Raise the first node's failure if the strategy cannot train the job on the nodes that are left."""
    try:
        strategy.check(job, nodes)
    except ValueError as error:
        if not failures:
            raise
        raise next(iter(failures.values())) from error
