"""A comparison: one job, trained by several strategies on several networks, and what came of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import mean
from typing import Any

from minidl import cluster, data, parallel
from minidl.cli import place, strategies
from minidl.cli.catalogue import MODELS, check_momentum, decay_every_epoch, optimizer_of
from minidl.cluster.cost.network import Network
from minidl.cluster.trace.recording import Shares

JOB = ("model", "data", "nodes", "batch_size", "epochs", "lr", "lr_decay", "seed", "kernels")  # Terms as typed


@dataclass(frozen=True)
class Terms:
    """What all runs have in common.

    batch_size: samples of one minibatch of all nodes together; an asynchronous gradient is of batch_size / nodes
    samples, so that a node computes as much between two messages as in a synchronous step. slow: by rank, how many
    times as long a node computes. node: of the simulated cluster; None: the nodes are processes of this machine.
    seeds: every strategy is trained with that many seeds: seed, seed + 1, ...
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
    slow: dict[int, float] = field(default_factory=dict)
    seeds: int = 1

    @property
    def all_seeds(self) -> range:
        """The seeds that every strategy is trained with."""
        return range(self.seed, self.seed + self.seeds)

    @property
    def on(self) -> str:
        """The engine."""
        return "processes" if self.node is None else "simulation"


@dataclass(frozen=True)
class Contestant:
    """A strategy as it was typed, and the job that it is given, with its seed: on one node if it cannot use more."""

    text: str
    strategy: parallel.Strategy
    job: parallel.Job
    nodes: int
    lr: float
    momentum: float


@dataclass
class Outcome:
    """What came of one contestant on one network.

    history: rows as those of a Report; of a run that ended early, what was known by then. ended: why it did, or "".
    bytes_sent: by each rank, the nodes' before the servers'.
    """

    contestant: Contestant
    network: str
    history: list[dict[str, Any]] = field(default_factory=list)
    ended: str = ""
    bytes_sent: list[int] = field(default_factory=list)
    shares: Shares | None = None
    staleness: Counter[int] = field(default_factory=Counter)

    @property
    def accuracy(self) -> float:
        """On the test set, at the end of the last epoch; nan without one."""
        return float(self.history[-1]["accuracy"]) if self.history else float("nan")

    @property
    def seconds(self) -> float:
        """Of training, up to the end of the last epoch."""
        return float(self.history[-1]["seconds"]) if self.history else 0.0

    @property
    def bytes_per_node(self) -> float | None:
        """Sent by a node, on average; None where that is not known, as the run ended early."""
        return mean(self.bytes_sent[: self.contestant.nodes]) if self.bytes_sent else None

    @property
    def mean_staleness(self) -> float | None:
        """Of the gradients that were applied, in updates; None where nothing was recorded."""
        return mean(self.staleness.elements()) if self.staleness else None

    def seconds_to(self, accuracy: float) -> float | None:
        """Seconds of training until the first epoch that ends with such an accuracy; None if none does."""
        return next((row["seconds"] for row in self.history if row["accuracy"] >= accuracy), None)


def contestant(text: str, terms: Terms) -> Contestant:
    """The strategy that was typed, and what it trains under these terms; ValueError if that cannot be."""
    strategy, own = strategies.parse_with(text, strategies.OF_THE_OPTIMIZER)
    lr, momentum = own.get("lr", terms.lr), own.get("momentum", terms.momentum)
    if not 0 < lr < float("inf"):
        raise ValueError(f"{text}: lr must be a number above 0, got {lr}")
    try:
        check_momentum(terms.model, momentum)
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from error
    nodes = 1 if isinstance(strategy, parallel.Serial) else terms.nodes
    job = parallel.Job(
        model=MODELS[terms.model].fit(data.load(terms.data)),
        data=partial(data.load, terms.data),
        optimizer=optimizer_of(terms.model, lr, momentum),
        schedule=decay_every_epoch(terms.lr_decay),
        batch_size=terms.batch_size,
        epochs=terms.epochs,
        seed=terms.seed,
    )
    if strategy.is_asynchronous:
        if terms.batch_size % nodes:
            raise ValueError(
                f"{text} computes gradients of batch_size / nodes samples, but {terms.batch_size} is no multiple of "
                f"{nodes}: give --batch-size {max(terms.batch_size // nodes, 1) * nodes}"
            )
        job = replace(job, batch_size=terms.batch_size // nodes)
    place.check(terms.on, nodes, strategy.servers)
    try:
        strategies.check(text, strategy, job, nodes, terms.model)
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from error
    return Contestant(text, strategy, job, nodes, lr, momentum)


def outcomes(
    contestants: Sequence[Contestant],
    networks: Sequence[tuple[str, Network | None]],
    terms: Terms,
    progress: Callable[[Contestant, str, parallel.Progress], None],
) -> Iterator[Outcome]:
    """Run each contestant on each network with each seed, one after the other."""
    for name, network in networks:
        for contestant in contestants:
            for seed in terms.all_seeds:
                one = replace(contestant, job=replace(contestant.job, seed=seed))
                yield _outcome(one, name, network, terms, partial(progress, one, name))


def _outcome(
    one: Contestant,
    network_name: str,
    network: Network | None,
    terms: Terms,
    progress: Callable[[parallel.Progress], None],
) -> Outcome:
    rows: list[dict[str, Any]] = []

    def listen(now: parallel.Progress) -> None:
        if now.row is not None:
            rows.append(now.row)
        progress(now)

    faults = cluster.FaultPlan()
    for rank, factor in terms.slow.items():
        if rank < one.nodes:
            faults = faults.slow(rank, factor)
    try:
        report = parallel.train(
            one.job,
            one.strategy,
            one.nodes,
            place.engine_of(terms.on, terms.node, trace="ledger"),
            network,
            progress=listen,
            timeout=place.timeout_of(terms.on),
            faults=faults,
        )
    except parallel.NonFiniteLoss as error:
        return Outcome(one, network_name, rows, f"diverged in epoch {error.epoch}")
    return Outcome(
        one,
        network_name,
        report.history,
        bytes_sent=[sum(traffic.nbytes for traffic in rank.values()) for rank in report.trace.ledger()],
        shares=_shares_of_nodes(report),
        staleness=report.staleness,
    )


def _shares_of_nodes(report: parallel.Report) -> Shares:
    """The shares of the nodes' time, that of the servers left out."""
    shares = [report.trace.shares(rank) for rank in range(report.nodes)]
    return Shares(*(mean(column) for column in zip(*shares, strict=True)))
