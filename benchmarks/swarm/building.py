"""Job, strategy, simulated cluster and faults from the choices of a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from benchmarks.swarm.choices import OF_RUN, Choices
from minidl import cluster, compress, nn, optim, parallel
from minidl import functional as F
from minidl.cli import strategies
from minidl.data import Dataset, Splits
from minidl.random import Purpose, stream
from minidl.tensor import Tensor

FEATURES, SIDE, CLASSES, TOKENS = 5, 8, 3, 8


def uneven(run: Any) -> nn.Module:
    """A model with tied, frozen and unused weights."""
    first, frozen, tied, also_tied = (nn.Linear(size, run.width) for size in (FEATURES, *[run.width] * 3))
    frozen.requires_grad_(False)
    frozen.unused = nn.Linear(4, 4)
    also_tied.weight = tied.weight
    return nn.Sequential(first, frozen, tied, nn.Tanh(), also_tied, nn.Linear(run.width, CLASSES))


def convolutions(run: Any) -> nn.Module:
    made = list[nn.Module]()
    for channels in (1, *[3] * (run.depth % 3)):
        made += [nn.Conv2d(channels, 3, 3, padding=1, bias=False), nn.BatchNorm2d(3), nn.ReLU()]
    made += [nn.Dropout(run.dropout), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3 * (SIDE // 2) ** 2, CLASSES)]
    return nn.Sequential(*made)


def gpt(run: Any, experts: int | None = None) -> nn.Module:
    width = 2 * min(run.width, 8)
    return nn.models.GPT(CLASSES, TOKENS, run.depth % 4, 2, width, run.dropout, experts=experts)


MODELS: dict[str, Callable[[Any], nn.Module]] = {
    "mlp": lambda run: nn.models.MLP(FEATURES, *[run.width] * run.depth, CLASSES),
    "uneven": uneven,
    "convolutions": convolutions,
    "lenet": lambda run: nn.models.LeNet(SIDE, CLASSES),
    "gpt": gpt,
    "experts": partial(gpt, experts=2),
}


def samples(run: Any) -> Splits:
    """Random samples for the model of the run; five more of them are the test set."""
    rng, count, is_text = stream(Purpose.SWARM, run.seed), run.samples, run.model in ("gpt", "experts")
    labels: tuple[int, ...] = (count + 5, TOKENS) if is_text else (count + 5,)
    shape = (1, SIDE, SIDE) if run.model in ("convolutions", "lenet") else (FEATURES,)
    x: Any = rng.integers(CLASSES, size=labels) if is_text else rng.normal(size=(count + 5, *shape))
    y: Any = rng.integers(CLASSES, size=labels)
    if run.loss == "padded":
        y[rng.random(labels) < 0.3] = -100
    if run.loss in ("squared error", "linear"):
        y = rng.normal(size=(*labels, CLASSES))
    return Splits(Dataset(x[:count], y[:count]), Dataset(x[count:], y[count:]))


class WatchedErrorFeedback(compress.ErrorFeedback):
    """Error feedback that verifies that its residual is not much larger than the gradients together."""

    given: float = 0.0

    def add_up(self, array: Any, nodes: int, rank: int) -> compress.exchange.Exchange:
        self.given += float(np.linalg.norm(array.astype(np.float64)))
        result = yield from super().add_up(array, nodes, rank)
        kept = np.linalg.norm(np.asarray(self.residual, np.float64))
        if self.given < 1e30 and not kept <= 1e-6 + 10 * self.given:  # above, a float32 in a message is infinite
            raise AssertionError(f"the residual has the norm {kept}, and the gradients together {self.given}")
        return result


LOSSES: dict[str, Any] = {
    "class weights": nn.CrossEntropyLoss(np.array([0.3, 1.0, 2.7]), axis=-1),
    "smoothed": nn.CrossEntropyLoss(label_smoothing=0.13, axis=-1),
    "squared error": F.mse_loss,
    "linear": lambda outputs, targets: (outputs * Tensor(targets.astype(outputs.dtype))).mean(),
}


def optimizer(run: Any, parameters: Any) -> optim.Optimizer:
    """The optimizer of the run; with `groups`, vectors have no weight decay and matrices a smaller learning rate."""
    kind, settings = strategies.parse_optimizer(run.optimizer)
    made: Any = partial(cast(Any, kind), lr=run.lr, weight_decay=run.weight_decay, **settings)
    vectors = {"params": [each for each in parameters if each.ndim <= 1], "weight_decay": 0.0}
    matrices = {"params": [each for each in reversed(parameters) if each.ndim > 1], "lr": run.lr / 3}
    return made([vectors, matrices] if run.groups else parameters)


SCHEDULES: dict[str, Callable[[Any, int], Any]] = {
    "steps": lambda optimizer, steps: optim.StepLR(optimizer, step_size=steps + 1, gamma=0.31),
    "cosine": lambda optimizer, steps: optim.CosineAnnealingLR(optimizer, T_max=2 * steps + 1),
    "warm-up": lambda optimizer, steps: optim.LinearLR(optimizer, start_factor=0.17, total_iters=steps + 2),
}
NETWORKS: dict[str, Callable[[int], cluster.Network]] = {
    "slow": lambda ranks: cluster.Network(alpha=0.013, beta=3.1e-6),
    "reducing": lambda ranks: cluster.Network(alpha=1e-5, beta=1e-9, gamma=2.3e-9),
    "racks": lambda ranks: cluster.Network.tree(-(-ranks // 2), 2, (1.3e-5, 1e9), (7e-5, 3e8), gamma=1e-10),
    "torus": lambda ranks: cluster.Network.torus((-(-ranks // 2), 2), (1.7e-5, 2e9)),
}


def build(choices: Choices) -> Any:
    """The run: each choice by its name; `is_calm`, without faults; and `options`, the arguments of `parallel.train`.

    Raises ValueError if the choices contradict each other.
    """
    run = SimpleNamespace(**{name.replace(" ", "_"): choices.get(name, values[0]) for name, values in OF_RUN.items()})
    faults = [value for name, value in choices.items() if name.startswith("fault ")]
    job = parallel.Job(
        model=lambda: MODELS[run.model](run).double(),
        data=partial(samples, run),
        optimizer=partial(optimizer, run),
        schedule=SCHEDULES.get(run.schedule),
        loss=LOSSES.get(run.loss, parallel.Job.loss),
        batch_schedule=(lambda epoch: run.batch_size * (epoch + 1) + epoch) if run.growing else None,
        **{name: getattr(run, name) for name in ("batch_size", "epochs", "shards", "seed", "clip_norm", "precision")},
    )
    settings = [name.partition(".")[2] + f"={value}" for name, value in choices.items() if name.startswith("strategy.")]
    strategy: Any = strategies.parse(f"{run.strategy}:{','.join(settings)}" if settings else run.strategy)[0]
    if isinstance(compressor := getattr(strategy, "compressor", None), compress.ErrorFeedback):
        strategy = replace(strategy, compressor=WatchedErrorFeedback(compressor.compressor))
    nodes = (1 if run.strategy == "serial" else run.workers) * ranks_of_worker(strategy)
    ranks, plan = nodes + strategy.servers, cluster.FaultPlan(seed=run.seed)
    for kind, rank, at in [*faults, *([("slow", *run.slow)] if run.slow else [])]:
        plan = getattr(plan, kind)(rank % ranks, at)
    engine = cluster.Simulation(
        NETWORKS[run.network](ranks) if run.network in NETWORKS else run.network,
        cluster.Node(run.flops_per_s, 10 * run.flops_per_s, run.jitter, {0: 1.3}) if run.flops_per_s else None,
        memory=cluster.Memory(run.memory, (1e-5, 1e9), host=0.1) if run.memory else None,
    )
    run.is_calm, run.options = not faults, {"job": job, "strategy": strategy, "nodes": nodes, "on": engine}
    run.options |= {"faults": plan, "on_failure": run.on_failure, "timeout": 1e5, "deadline": 600.0}
    run.options["elastic"] = parallel.Elastic(rejoin=True) if run.elastic == "rejoin" else run.elastic
    return run


def ranks_of_worker(strategy: Any) -> int:
    """Number of ranks that hold one replica of the model."""
    strategy = getattr(strategy, "replica", None) or strategy
    tiles = [int(one) for one in str(getattr(strategy, "spatial", 1)).split("x")]
    return math.prod([getattr(strategy, name, 1) for name in ("stages", "tp", "ep")] + tiles)
