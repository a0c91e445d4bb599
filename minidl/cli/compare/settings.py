"""The settings shared by all runs of `minidl compare`, and the strategies on its command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from minidl import cluster, parallel
from minidl.cli import engines, job, strategies
from minidl.cli.models import check_momentum
from minidl.parallel.comparison.entrant import Entrant

JOB = ("model", "data", "nodes", "batch_size", "epochs", "lr", "lr_decay", "seed", "kernels")
"""The options that describe the job; `Settings` has them under the same names."""


@dataclass(frozen=True)
class Settings:
    """The settings shared by all runs of a comparison.

    Parameters
        batch_size  samples of one minibatch, over all nodes
        node        speed of the simulated nodes; None: the nodes are real
        target      test accuracy; the time that a strategy takes to reach it is reported
        slow        maps a rank to the factor by which its computing takes longer
        seeds       runs of every strategy, with seeds seed, seed + 1, ...
        formats     formats of the picture: png, svg, pdf
        on          the engine: "simulation", "processes" or "mpi"
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
    formats: tuple[str, ...] = ("png",)
    on: str = "simulation"

    @property
    def all_seeds(self) -> range:
        """The seeds of the runs of every strategy."""
        return range(self.seed, self.seed + self.seeds)

    @property
    def columns(self) -> dict[str, Any]:
        """Columns of runs.csv, the same in all rows."""
        return {
            **{name: getattr(self, name) for name in ("model", "data", "on", "lr_decay")},
            "simulated_node": "" if self.node is None else engines.node_text(self.node),
        }


def typed(text: str, settings: Settings) -> tuple[parallel.Strategy, parallel.Job]:
    """Parse a strategy; return it, and its job with the learning rate and the momentum among its settings."""
    strategy, of_the_optimizer = strategies.parse(text)
    own = {name: of_the_optimizer.get(name, getattr(settings, name)) for name in ("lr", "momentum")}
    try:
        check_momentum(settings.model, own["momentum"])
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from error
    return strategy, job.build(vars(settings) | own)


def entrant(text: str, strategy: parallel.Strategy, own_job: parallel.Job, settings: Settings) -> Entrant:
    """The comparison's entrant for a strategy, typed as `text`; ValueError if it cannot train that job."""
    one = Entrant.of(text, strategy, own_job, settings.nodes)
    if not (settings.on == "mpi" and one.nodes == 1):  # which trains on one process
        engines.check(settings.on, one.nodes, strategy.servers)
    try:
        strategies.check(text, strategy, one.job, one.nodes, settings.model)
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from error
    return one
