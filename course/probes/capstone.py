"""The race of the capstone: a cluster, a way to train on it as plain data (a recipe), and the run that times it."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from minidl import cluster as nodes_of
from minidl import compress, data, nn, optim, parallel
from minidl.random import Purpose, stream

TARGET = 0.97
SAMPLES = 1438
WIDTHS = (64, 64, 10)
PARAMETERS = sum((before + 1) * after for before, after in pairwise(WIDTHS))
FLOPS_A_SAMPLE = 21_000  # of forward, backward and update, as the kernels count them in minibatches of 32 or more
MOST_EPOCHS = 40
MOST_GRADIENTS = 20_000
LONGEST_RUN = 120.0  # real seconds
MISSED = 2.0  # times the budget

PRACTICE = (0, 0)  # the seeds of the clusters of the leaderboard
Seeds = tuple[int, int]
Recipe = Mapping[str, Any]
Entry = Callable[["Cluster"], Recipe]


@dataclass(frozen=True)
class Cluster:
    """Machines with a slow one among them, one that will die, and a budget.

    Attributes
        workers           machines, numbered from 0
        sample_seconds    of the gradient of one sample, on a machine that is not slow
        nbytes            of a gradient, and of the weights
        alpha             seconds a message
        beta              seconds a byte
        slow              (machine, factor): this machine takes `factor` times as long to compute
        death             (machine, second): it dies in its first message after this second
        budget            seconds in which the target is to be reached
    """

    workers: int
    sample_seconds: float
    nbytes: float
    alpha: float
    beta: float
    slow: tuple[int, float]
    death: tuple[int, float]
    budget: float


def drawn(seeds: Seeds, gbits: tuple[float, float]) -> Cluster:
    """A cluster with links of that many Gbit/s, from one to the other; its budget is what 15 plain passes take."""
    rng = stream(Purpose.MANUAL, *seeds, f"capstone {gbits}")

    def between(low: float, high: float) -> float:
        return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.3g}")

    workers, sample_seconds = int(rng.integers(5, 8)), between(0.006, 0.015)
    alpha, beta = between(2e-6, 5e-5), between(8e-9 / gbits[1], 8e-9 / gbits[0])
    slow, dead = map(int, rng.choice(workers, 2, replace=False))
    factor, nbytes = between(2, 4), 50e6
    ring = nodes_of.cost.all_reduce("ring", workers, int(nbytes), alpha, beta)
    budget = 15 * SAMPLES / 64 * (64 / workers * sample_seconds * factor + ring)
    return Cluster(workers, sample_seconds, nbytes, alpha, beta, (slow, factor),
                   (dead, float(f"{budget * rng.uniform(0.03, 0.2):.3g}")), float(f"{budget:.3g}"))  # fmt: skip


KINDS = {"slow links": (0.5, 2.0), "faster links": (8.0, 25.0), "fastest links": (200.0, 800.0)}
"""What clusters are called, and their Gbit/s."""


def clusters(seeds: Seeds = PRACTICE) -> dict[str, Cluster]:
    """One cluster of each kind."""
    return {kind: drawn(seeds, gbits) for kind, gbits in KINDS.items()}


# A recipe becomes a job and a strategy


def _one_of(what: str, given: Any, known: Iterable[str]) -> None:
    if given not in (names := list(known)):
        raise ValueError(f"{what} must be one of {', '.join(names)}, got {given!r}")


def _whole(what: str, given: Any, least: int, most: int) -> int:
    if isinstance(given, bool) or not hasattr(given, "__index__") or not least <= operator.index(given) <= most:
        raise ValueError(f"{what} must be a whole number from {least} to {most}, got {given!r}")
    return operator.index(given)


def _list(what: str, given: Any) -> Sequence[Any]:
    if not isinstance(given, list | tuple):
        raise TypeError(f"{what} must be a list, got {given!r}")
    return given


@dataclass(frozen=True)
class Rounds(parallel.Strategy):
    """A strategy as a list: after each minibatch, whose gradients or whose weights are averaged.

    Parameters
        steps   steps, repeated until the end, each a list: ["alone"], ["gradients", group, ...] before the update or
                ["weights", group, ...] after it. A group is a list of nodes; without groups all nodes are one. Nodes
                in no group go on alone

    The mean of all nodes' weights is evaluated. The run ends when a node dies.
    """

    steps: Sequence[Sequence[Any]] = (("gradients",),)

    def __post_init__(self) -> None:
        if not _list("Rounds: steps", self.steps):
            raise ValueError('Rounds: steps must be a list such as [["alone"], ["weights"]], got an empty one')
        for step in self.steps:
            _one_of(
                "Rounds: a step", step[0] if _list("Rounds: a step", step) else "", ("alone", "gradients", "weights")
            )
            for group in step[1:]:
                _list("Rounds: a group", group)

    def run(self, session: parallel.Session) -> None:
        groups: dict[int, nodes_of.Communicator] = {}
        for batch in session.local_batches():
            number = session.steps % len(self.steps)
            kind, *named = self.steps[number]
            session.zero_grad()
            if len(batch.x):  # in the ragged last minibatch a share may be empty
                session.local_loss(batch).backward()
            if kind != "alone" and number not in groups:
                own = next((1 + at for at, group in enumerate(named) if session.comm.rank in group), 0)
                alone = 1 + len(named) + session.comm.rank
                groups[number] = session.comm.split(own or alone if named else 0)
            if kind == "gradients":
                total = groups[number].all_reduce(np.append(session.gradient() * batch.counted, batch.counted))
                session.set_gradient(total[:-1] / max(total[-1], 1))
            session.update()
            if kind == "weights":
                session.set_weights(groups[number].all_reduce(session.weights(), op="mean"))


def _names(module: Any, base: type) -> dict[str, type]:
    """The public subclasses of a class in a module, by name."""
    there = {name: getattr(module, name) for name in module.__all__}
    return {name: kind for name, kind in there.items() if isinstance(kind, type) and base in kind.__mro__[1:]}


STRATEGIES = _names(parallel, parallel.Strategy) | {"Rounds": Rounds}
del STRATEGIES["Hogwild"]  # its weights are in one memory, which a cluster does not have
OPTIMIZERS = _names(optim, optim.Optimizer)
INSIDE = STRATEGIES | _names(compress, compress.Compressor)
KEYS = ("ranks", "strategy", "optimizer", "batch_size", "epochs", "rates")


def _maker(what: str, given: Any, known: Mapping[str, type]) -> Callable[..., Any]:
    """What makes the object that {"name": "TopK", "density": 0.01} describes; settings may be such dicts, too."""
    if not isinstance(given, dict) or not isinstance(given.get("name"), str):
        raise ValueError(f'{what} must be a dict such as {{"name": "{next(iter(known))}"}}, got {given!r}')
    _one_of(f"{what}: name", given["name"], known)
    settings = {key: _maker(f"{what}: {key}", value, INSIDE)() if isinstance(value, dict) else value
                for key, value in given.items() if key != "name"}  # fmt: skip
    return partial(known[given["name"]], **settings)


def _factors(rates: Sequence[float], optimizer: optim.Optimizer, steps_per_epoch: int) -> optim.LambdaLR:
    """A schedule whose factor changes after each pass; the last one stays."""
    return optim.LambdaLR(optimizer, lambda step: rates[min(step // steps_per_epoch, len(rates) - 1)])


@cache
def digits() -> data.Splits:
    """The digits, of which every fifth is kept for the test: 1,438 to train with and 359 to test with."""
    x, y = (np.concatenate(both) for both in zip(*(part[:] for part in data.digits()), strict=True))
    is_test = np.arange(len(x)) % 5 == 3
    return data.Splits(data.Dataset(x[~is_test], y[~is_test]), data.Dataset(x[is_test], y[is_test]))


def checked(cluster: Cluster, recipe: Recipe, seed: int = 0) -> tuple[parallel.Job, parallel.Strategy, list[int]]:
    """The job, the strategy and the machines of a recipe.

    Raises ValueError or TypeError for what is no recipe, with a sentence that says why.
    """
    if not isinstance(recipe, dict):
        raise TypeError(f"a recipe is a dict with the keys {', '.join(KEYS)}, got {type(recipe).__name__}")
    for key in recipe:
        _one_of("a key of the recipe", key, KEYS)
    given: dict[str, Any] = {
        "ranks": [*range(cluster.workers)],
        "batch_size": 64,
        "epochs": 12,
        "rates": [1.0],
    } | recipe
    ranks = [_whole("each of ranks", rank, 0, cluster.workers - 1) for rank in _list("ranks", given["ranks"])]
    if not ranks or len(set(ranks)) < len(ranks):
        raise ValueError(f"ranks must be different machines, at least one, got {ranks}")
    rates = [float(rate) for rate in _list("rates", given["rates"])]
    if not all(0 <= rate < np.inf for rate in rates):
        raise ValueError(f"rates must be numbers of at least 0, got {rates}")
    epochs = _whole("epochs", given["epochs"], 1, MOST_EPOCHS)
    strategy = _maker("strategy", given.get("strategy"), STRATEGIES)()
    nodes = len(ranks) - strategy.servers
    if nodes < 1:
        raise ValueError(f"{strategy.servers} of {len(ranks)} machines are servers: that leaves none to compute")
    job = parallel.Job(
        partial(nn.models.MLP, *WIDTHS), digits, _maker("optimizer", given.get("optimizer"), OPTIMIZERS),
        partial(_factors, rates or [1.0]), batch_size=given["batch_size"], epochs=epochs, seed=seed,
    )  # fmt: skip
    gradients = epochs * ceil(SAMPLES / job.batch_size) * (1 if strategy.is_asynchronous else nodes)
    if gradients > MOST_GRADIENTS:
        most = f"a run has at most {MOST_GRADIENTS:,} gradients"
        raise ValueError(f"{most}; this one has {gradients:,}: make minibatches larger, or epochs fewer")
    return job, strategy, ranks


# The race


@dataclass(frozen=True)
class Race:
    """A run of a recipe on a cluster.

    Attributes
        seconds  virtual seconds until the first epoch that ended with the target; None: not within the budget
        score    the same as a share of the budget; MISSED if the target was not reached
        rows     (seconds, accuracy, test loss) at the end of each epoch, up to the target
        why      what ended the run before it was done; "" if nothing did
    """

    seconds: float | None
    score: float
    rows: tuple[tuple[float, float, float], ...]
    why: str = ""


class _Ended(Exception):  # noqa: N818  (the name says what happened)
    """Ends a run at the target, or after the budget."""


def run(cluster: Cluster, recipe: Recipe, seed: int = 0) -> Race:
    """Train by the recipe on the simulated cluster, up to the target; the same race on every computer.

    The network is small; messages take as long as if it had `cluster.nbytes`, and the gradient of a sample takes
    `cluster.sample_seconds`. The model is evaluated at the end of each epoch, for which it is collected from all
    machines: each time takes one ring all-reduce, whatever the strategy. seed: of the weights and the shuffles.

    Raises what `checked` raises.
    """
    job, strategy, ranks = checked(cluster, recipe, seed)
    faults = nodes_of.FaultPlan()
    if cluster.slow[0] in ranks:
        faults = faults.slow(ranks.index(cluster.slow[0]), cluster.slow[1])
    if cluster.death[0] in ranks:
        faults = faults.kill(ranks.index(cluster.death[0]), at=("seconds", cluster.death[1]))
    simulation = nodes_of.Simulation(
        nodes_of.Network(cluster.alpha, cluster.beta * cluster.nbytes / (4 * PARAMETERS)),
        nodes_of.Node(FLOPS_A_SAMPLE / cluster.sample_seconds, np.inf),
        trace="ledger",
    )
    is_elastic = strategy.resumes_from in ("step", "mean") and not strategy.servers  # others would get new machines
    survival: dict[str, Any] = {"elastic": True} if is_elastic else {"on_failure": "continue"}
    collected = nodes_of.cost.all_reduce("ring", len(ranks), int(cluster.nbytes), cluster.alpha, cluster.beta)
    rows: list[tuple[float, float, float]] = []

    def hear(progress: parallel.Progress) -> None:
        if (row := progress.row) is not None:
            rows.append((row["seconds"] + (len(rows) + 1) * collected, row["accuracy"], row["test_loss"]))
            if row["accuracy"] >= TARGET or rows[-1][0] > cluster.budget:
                raise _Ended

    try:
        with threadpool_limits(1), suppress(_Ended):
            parallel.train(
                job, strategy, len(ranks) - strategy.servers, simulation,
                progress=hear, faults=faults, deadline=LONGEST_RUN, **survival,
            )  # fmt: skip
    except (parallel.NonFiniteLoss, nodes_of.ClusterError) as error:
        return Race(None, MISSED, (), str(error).partition("\n")[0])
    seconds, accuracy, _ = rows[-1]
    if accuracy < TARGET or not 0 < seconds <= cluster.budget:
        return Race(None, MISSED, tuple(rows))
    return Race(seconds, seconds / cluster.budget, tuple(rows))


def score(races: Sequence[Race]) -> float:
    """The geometric mean of the races' scores; a cluster on which the target was missed counts as two budgets."""
    return float(np.exp(np.mean(np.log([race.score for race in races]))))


def submit(name: str, entry: Entry, path: str | Path = "leaderboard.json", seeds: Seeds = PRACTICE) -> float:
    """Race an entry, add its recipes to a leaderboard file, and return its score.

    path: a file that `python3 -m course leaderboard` reads; entries of the same name and seeds are replaced.
    """
    given = {kind: entry(each) for kind, each in clusters(seeds).items()}
    recipes = json.loads(json.dumps(given, default=lambda value: value.tolist()))  # of numpy's numbers, Python's
    own = score([run(each, recipes[kind]) for kind, each in clusters(seeds).items()])
    path = Path(path)
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    others = [one for one in known if (one["name"], one["seeds"]) != (name, list(seeds))]
    row = {"name": name, "seeds": list(seeds), "recipes": recipes}
    path.write_text(json.dumps([*others, row], indent=1) + "\n", encoding="utf-8")
    return own
