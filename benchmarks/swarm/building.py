"""Job, strategy, simulated cluster and faults from the choices of a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.swarm.choices import OF_RUN, Choices
from minidl import cluster, compress, nn, optim, parallel
from minidl import functional as F
from minidl.cli import strategies
from minidl.data import Dataset, Splits
from minidl.random import Purpose, stream
from minidl.tensor import Tensor

FEATURES, SIDE, CLASSES, TOKENS = 5, 8, 3, 8
TEXT, IMAGES = ("gpt", "experts"), ("images", "lenet")


class Uneven(nn.Module):
    """Tied and frozen weights, and weights that nothing uses, in the middle of others."""

    def __init__(self, width: int) -> None:
        self.first, self.frozen, self.second, self.third = (
            nn.Linear(size, width) for size in (FEATURES, width, width, width)
        )
        self.frozen.requires_grad_(False)
        self.third.weight = self.second.weight
        self.unused, self.last = nn.Linear(4, 4), nn.Linear(width, CLASSES)

    def stages(self) -> list[nn.Stage]:
        def tanh(layer: nn.Module) -> nn.Stage:
            return nn.Stage(lambda x: layer(x).tanh(), layer)

        hidden = map(tanh, (self.first, self.frozen, self.second, self.third))
        return [*hidden, nn.Stage(self.last, self.last, self.unused)]

    def forward(self, x: Any) -> Any:
        return nn.run_stages(self.stages(), x)


def model(run: Any) -> nn.Module:
    """The model of the run, in float64."""
    width, depth, made = run.width, run.depth, list[nn.Module]()
    if run.model == "uneven":
        return Uneven(width).double()
    if run.model in TEXT:
        experts = 2 if run.model == "experts" else None
        return nn.models.GPT(CLASSES, TOKENS, depth % 4, 2, 2 * min(width, 8), run.dropout, experts=experts).double()
    if run.model == "lenet":
        return nn.models.LeNet(SIDE, CLASSES).double()
    if run.model == "mlp":
        return nn.models.MLP(FEATURES, *[width] * depth, CLASSES).double()
    if run.model == "images":
        for channels in (1, *[3] * (depth % 3)):
            made += [nn.Conv2d(channels, 3, 3, padding=1, bias=False), nn.BatchNorm2d(3), nn.ReLU()]
        made += [nn.Dropout(run.dropout), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3 * (SIDE // 2) ** 2, CLASSES)]
        return nn.Sequential(*made).double()
    for size in (FEATURES, *[width] * depth):
        made += [nn.Linear(size, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(run.dropout)]
        made += [nn.Linear(width, width), nn.LayerNorm(width)]
    return nn.Sequential(*made, nn.Linear(width, CLASSES)).double()


def samples(run: Any) -> Splits:
    """Random samples for the model of the run; five more of them are the test set."""
    rng, count = stream(Purpose.SWARM, run.seed), run.samples
    labels: tuple[int, ...] = (count + 5, TOKENS) if run.model in TEXT else (count + 5,)
    shape = (1, SIDE, SIDE) if run.model in IMAGES else (FEATURES,)
    x: Any = rng.integers(CLASSES, size=labels) if run.model in TEXT else rng.normal(size=(count + 5, *shape))
    y: Any = rng.integers(CLASSES, size=labels)
    if run.loss == "padded":
        y[rng.random(labels) < 0.3] = -100
    if run.loss in ("squared error", "linear"):
        y = rng.normal(size=(*labels, CLASSES))
    return Splits(Dataset(x[:count], y[:count]), Dataset(x[count:], y[count:]))


class WatchedErrorFeedback(compress.ErrorFeedback):
    """Error feedback that verifies that it never keeps much more than all that it was given."""

    given: Any = 0.0

    def add_up(self, array: Any, nodes: int, rank: int) -> compress.exchange.Exchange:
        self.given = self.given + np.abs(array).astype(np.float64)
        result = yield from super().add_up(array, nodes, rank)
        kept, given = (float(np.linalg.norm(np.asarray(one, np.float64))) for one in (self.residual, self.given))
        if given < 1e30 and not kept <= 1e-6 + 10 * given:  # above, a float32 in a message is infinite
            raise AssertionError(f"the residual has the norm {kept}, and all gradients together {given}")
        return result


def linear_loss(outputs: Tensor, targets: Any) -> Tensor:
    """A loss with the same gradient at all outputs."""
    return (outputs * Tensor(targets.astype(outputs.dtype))).mean()


LOSSES: dict[str, Any] = {
    "class weights": nn.CrossEntropyLoss(np.array([0.3, 1.0, 2.7]), axis=-1),
    "smoothed": nn.CrossEntropyLoss(label_smoothing=0.13, axis=-1),
    "squared error": F.mse_loss,
    "linear": linear_loss,
}


def optimizer(run: Any, parameters: Any) -> optim.Optimizer:
    """The optimizer of the run; groups: matrices and the others apart, in another order and at other rates."""
    kind, settings = strategies.parse_optimizer(run.optimizer)
    made: Callable[..., optim.Optimizer] = partial(kind, lr=run.lr, weight_decay=run.weight_decay, **settings)
    matrices = [parameter for parameter in reversed(parameters) if parameter.ndim > 1]
    others = {"params": [parameter for parameter in parameters if parameter.ndim <= 1], "weight_decay": 0.0}
    return made([others, {"params": matrices, "lr": run.lr / 3}] if run.groups else parameters)


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


@dataclass
class Setting:
    """What a run trains, by which strategy, and with which options of `train`.

    run      all choices of the run
    is_calm  whether no rank fails, and no message is lost or changed
    """

    run: Any
    is_calm: bool
    job: parallel.Job
    strategy: Any
    nodes: int
    options: dict[str, Any]


def build(choices: Choices) -> Setting:
    """What the choices stand for. ValueError if they contradict each other."""
    run = SimpleNamespace(**{name.replace(" ", "_"): choices.get(name, values[0]) for name, values in OF_RUN.items()})
    faults = [value for name, value in choices.items() if name.startswith("fault ")]
    job = parallel.Job(
        model=partial(model, run),
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
    options = {
        "on": cluster.Simulation(
            NETWORKS[run.network](ranks) if run.network in NETWORKS else run.network,
            cluster.Node(run.flops_per_s, 10 * run.flops_per_s, run.jitter, {0: 1.3}) if run.flops_per_s else None,
            memory=cluster.Memory(run.memory, (1e-5, 1e9), host=0.1) if run.memory else None,
        ),
        "faults": plan,
        "elastic": parallel.Elastic(rejoin=True) if run.elastic == "rejoin" else run.elastic,
        "on_failure": run.on_failure,
        "timeout": 1e5,
        "deadline": 60.0,  # real seconds; a run takes a fraction of one
    }
    return Setting(run, not faults, job, strategy, nodes, options)


def ranks_of_worker(strategy: Any) -> int:
    """How many ranks share a replica of the model."""
    if replica := getattr(strategy, "replica", None):
        return ranks_of_worker(replica)
    tiles = [int(one) for one in str(getattr(strategy, "spatial", 1)).split("x")]
    return math.prod([getattr(strategy, name, 1) for name in ("stages", "tp", "ep")] + tiles)
