"""The runs of a comparison: one job, trained by several strategies on several networks, and the result of each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import mean
from typing import Any

from minidl import cluster, parallel
from minidl.cli import engines, job, strategies
from minidl.cli.models import check_momentum
from minidl.cluster import Shares
from minidl.cluster.cost.network import Network

JOB = ("model", "data", "nodes", "batch_size", "epochs", "lr", "lr_decay", "seed", "kernels")
"""The options that describe the job; `Comparison` has them under the same names."""


@dataclass(frozen=True)
class Comparison:
    """What all runs of a comparison have in common.

    Parameters
        batch_size  samples of one minibatch, over all nodes. An asynchronous gradient is of batch_size / nodes samples:
                    between two messages a node then computes as much as in a synchronous step
        node        speed of the simulated nodes; None: the nodes are processes of this machine
        target      test accuracy; the time that a strategy takes to reach it is reported
        slow        by rank, how many times as long a node computes
        seeds       runs of every strategy, with seeds seed, seed + 1, ...
    """

    model: str
    data: str
    nodes: int
    batch_size: int
    epochs: int
    lr: float
    lr_decay: float
    seed: int
    kernels: str
    momentum: float
    node: cluster.Node | None
    target: float = 0.95
    slow: dict[int, float] = field(default_factory=dict)
    seeds: int = 1

    @property
    def all_seeds(self) -> range:
        """The seeds of the runs of every strategy."""
        return range(self.seed, self.seed + self.seeds)

    @property
    def on(self) -> str:
        """The engine."""
        return "processes" if self.node is None else "simulation"

    @property
    def source(self) -> str:
        """Where the times come from, for tables and pictures."""
        return "measured" if self.node is None else "simulated"


@dataclass(frozen=True)
class Contestant:
    """A strategy as it was typed, and the job that it trains; `nodes` is 1 if the strategy cannot use more."""

    text: str
    strategy: parallel.Strategy
    job: parallel.Job
    nodes: int
    lr: float
    momentum: float


@dataclass
class TrainedRun:
    """The result of one run: one contestant, with one seed, on one network.

    Parameters
        history     rows as in `parallel.Report`; for a run that ended early, the rows until then
        ended       why the run ended early, or ""
        bytes_sent  by each rank; the nodes come before the servers
    """

    contestant: Contestant
    network: str
    history: Sequence[Mapping[str, Any]] = field(default_factory=list)
    ended: str = ""
    bytes_sent: list[int] = field(default_factory=list)
    shares: Shares | None = None
    staleness: Counter[int] = field(default_factory=Counter)

    @property
    def accuracy(self) -> float:
        """Accuracy on the test set after the last epoch; nan without an epoch."""
        return float(self.history[-1]["accuracy"]) if self.history else float("nan")

    @property
    def seconds(self) -> float:
        """Time of training until the end of the last epoch, in seconds."""
        return float(self.history[-1]["seconds"]) if self.history else 0.0

    @property
    def bytes_per_node(self) -> float | None:
        """Mean bytes that a node sent; None if the run ended early."""
        return mean(self.bytes_sent[: self.contestant.nodes]) if self.bytes_sent else None

    @property
    def mean_staleness(self) -> float | None:
        """Mean staleness of the gradients that were applied, in updates; None if none was recorded."""
        return mean(self.staleness.elements()) if self.staleness else None

    def seconds_to(self, accuracy: float) -> float | None:
        """Seconds of training until the end of the first epoch with at least this test accuracy; None without one."""
        return next((row["seconds"] for row in self.history if row["accuracy"] >= accuracy), None)


def contestant(text: str, comparison: Comparison) -> Contestant:
    """The strategy that was typed, with its job; ValueError if it cannot train that job."""
    strategy, of_the_optimizer = strategies.parse(text)
    lr, momentum = (of_the_optimizer.get(name, getattr(comparison, name)) for name in ("lr", "momentum"))
    nodes = 1 if isinstance(strategy, parallel.Serial) else comparison.nodes
    batch_size = comparison.batch_size
    if strategy.is_asynchronous:
        if batch_size % nodes:
            raise ValueError(
                f"{text} computes gradients of batch_size / nodes samples, but {batch_size} is not a multiple of "
                f"{nodes}: give --batch-size {max(batch_size // nodes, 1) * nodes}"
            )
        batch_size //= nodes
    engines.check(comparison.on, nodes, strategy.servers)
    own_job = job.build(vars(comparison) | {"lr": lr, "momentum": momentum, "batch_size": batch_size})
    try:
        check_momentum(comparison.model, momentum)
        strategies.check(text, strategy, own_job, nodes, comparison.model)
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from error
    return Contestant(text, strategy, own_job, nodes, lr, momentum)


def trained(
    contestants: Sequence[Contestant],
    networks: Sequence[tuple[str, Network | None]],
    comparison: Comparison,
    progress: Callable[[Contestant, str, parallel.Progress], None],
) -> Iterator[TrainedRun]:
    """Train each contestant on each network with each seed, one run after the other."""
    for name, network in networks:
        for contestant in contestants:
            for seed in comparison.all_seeds:
                one = replace(contestant, job=replace(contestant.job, seed=seed))
                yield _trained(one, name, network, comparison, partial(progress, one, name))


def _trained(
    one: Contestant,
    network_name: str,
    network: Network | None,
    comparison: Comparison,
    progress: Callable[[parallel.Progress], None],
) -> TrainedRun:
    rows: list[Mapping[str, Any]] = []

    def listen(now: parallel.Progress) -> None:
        if now.row is not None:
            rows.append(now.row)
        progress(now)

    faults = cluster.FaultPlan()
    for rank, factor in comparison.slow.items():
        if rank < one.nodes:
            faults = faults.slow(rank, factor)
    try:
        report = parallel.train(
            one.job,
            one.strategy,
            one.nodes,
            engines.engine_of(comparison.on, comparison.node, trace="ledger"),
            network,
            progress=listen,
            timeout=engines.timeout_of(comparison.on),
            faults=faults,
        )
    except parallel.NonFiniteLoss as error:
        return TrainedRun(one, network_name, rows, f"diverged in epoch {error.epoch}")
    shares = [report.trace.shares(rank) for rank in range(report.nodes)]  # without the servers'
    return TrainedRun(
        one,
        network_name,
        report.history,
        bytes_sent=[sum(traffic.nbytes for traffic in rank.values()) for rank in report.trace.ledger()],
        shares=mean_shares(shares),
        staleness=report.staleness,
    )


def mean_shares(shares: Sequence[Shares]) -> Shares:
    """The mean of each share: of computing, communicating and waiting."""
    return Shares(*(mean(column) for column in zip(*shares, strict=True)))
