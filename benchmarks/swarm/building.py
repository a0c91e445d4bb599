"""Job, strategy, simulated cluster and faults from the choices of a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.swarm.choices import OF_RUN, Choices
from minidl import cluster, compress, nn, optim, parallel
from minidl import functional as F
from minidl.cli import components, strategies
from minidl.data import Dataset, Splits
from minidl.random import Purpose, stream
from minidl.tensor import Tensor

FEATURES, SIDE, CLASSES, TOKENS = 5, 8, 3, 8


class Uneven(nn.Module):
    """Tied and frozen weights, and weights that nothing uses, in the middle of others."""

    def __init__(self, width: int) -> None:
        self.first, self.unused = nn.Linear(FEATURES, width), nn.Linear(4, 4)
        self.frozen = nn.Linear(width, width).requires_grad_(False)
        self.second, self.third = nn.Linear(width, width), nn.Linear(width, width)
        self.third.weight = self.second.weight
        self.last = nn.Linear(width, CLASSES)

    def stages(self) -> list[nn.Stage]:
        def tanh(layer: nn.Module) -> nn.Stage:
            return nn.Stage(lambda x: layer(x).tanh(), layer)

        return [*map(tanh, (self.first, self.frozen, self.second, self.third)), nn.Stage(self.last, self.last, self.unused)]

    def forward(self, x: Any) -> Any:
        return nn.run_stages(self.stages(), x)


def model(kind: str, width: int, depth: int, dropout: float) -> nn.Module:
    """The model of that kind, in float64."""
    if kind == "uneven":
        made: nn.Module = Uneven(width)
    elif kind == "norms":
        layers = [nn.Linear(FEATURES, width)]
        for _ in range(depth):
            layers += [nn.Linear(width, width, bias=False), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(dropout)]
            layers += [nn.Linear(width, width), nn.LayerNorm(width)]
        made = nn.Sequential(*layers, nn.Linear(width, CLASSES))
    elif kind == "images":
        layers, channels = [], 1
        for _ in range(min(max(depth, 1), 3)):
            layers += [nn.Conv2d(channels, 3, 3, padding=1, bias=False), nn.BatchNorm2d(3), nn.ReLU()]
            channels = 3
        layers += [nn.Dropout(dropout), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3 * (SIDE // 2) ** 2, CLASSES)]
        made = nn.Sequential(*layers)
    elif kind == "lenet":
        made = nn.models.LeNet(SIDE, CLASSES)
    elif kind in ("gpt", "experts"):
        experts = 2 if kind == "experts" else None
        made = nn.models.GPT(CLASSES, TOKENS, min(depth, 3), 2, 2 * min(width, 8), dropout, experts=experts)
    else:
        made = nn.models.MLP(FEATURES, *[width] * depth, CLASSES)
    return made.double()


def samples(kind: str, loss: str, count: int, seed: int) -> Splits:
    """Random samples for the model of that kind."""
    rng = stream(Purpose.SWARM, seed)
    shape = {"images": (1, SIDE, SIDE), "lenet": (1, SIDE, SIDE)}.get(kind, (FEATURES,))
    size, is_text = count + 5, kind in ("gpt", "experts")
    x: Any = rng.integers(CLASSES, size=(size, TOKENS)) if is_text else rng.normal(size=(size, *shape))
    y: Any = rng.integers(CLASSES, size=(size, TOKENS) if is_text else size)
    if loss == "padded":
        y[rng.random(y.shape) < 0.3] = -100
    if loss in ("squared error", "linear"):
        y = rng.normal(size=(*y.shape, CLASSES))
    return Splits(Dataset(x[:count], y[:count]), Dataset(x[count:], y[count:]))


class WatchedErrorFeedback(compress.ErrorFeedback):
    """Error feedback that verifies: nothing is lost, and what is kept is not more than all that was given."""

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


def loss(kind: str) -> Callable[..., Any]:
    if kind in ("class weights", "smoothed"):
        weight = np.array([0.3, 1.0, 2.7]) if kind == "class weights" else None
        return nn.CrossEntropyLoss(weight, label_smoothing=0.0 if weight is not None else 0.13, axis=-1)
    return {"squared error": F.mse_loss, "linear": linear_loss}.get(kind, parallel.Job.loss)


def optimizer(text: str, lr: float, weight_decay: float, groups: bool, parameters: Any) -> optim.Optimizer:
    """The optimizer that is typed so; groups: matrices and the others apart, in another order and at other rates."""
    kind, settings = strategies.parse_optimizer(text)
    made: Callable[..., optim.Optimizer] = partial(kind, lr=lr, weight_decay=weight_decay, **settings)
    if not groups:
        return made(parameters)
    matrices = [parameter for parameter in reversed(parameters) if parameter.ndim > 1]
    others = [parameter for parameter in parameters if parameter.ndim <= 1]
    return made([{"params": others, "weight_decay": 0.0}, {"params": matrices, "lr": lr / 3}])


def schedule(kind: str, optimizer: optim.Optimizer, steps_per_epoch: int) -> Any:
    if kind == "steps":
        return optim.StepLR(optimizer, step_size=steps_per_epoch + 1, gamma=0.31)
    if kind == "cosine":
        return optim.CosineAnnealingLR(optimizer, T_max=2 * steps_per_epoch + 1)
    return optim.LinearLR(optimizer, start_factor=0.17, total_iters=steps_per_epoch + 2)


def grown(batch_size: int, epoch: int) -> int:
    return batch_size * (epoch + 1) + epoch


NETWORKS: dict[str, Callable[[int], cluster.Network]] = {
    "slow": lambda ranks: cluster.Network(alpha=0.013, beta=3.1e-6),
    "reducing": lambda ranks: cluster.Network(alpha=1e-5, beta=1e-9, gamma=2.3e-9),
    "racks": lambda ranks: cluster.Network.tree(-(-ranks // 2), 2, (1.3e-5, 1e9), (7e-5, 3e8), gamma=1e-10),
    "torus": lambda ranks: cluster.Network.torus((-(-ranks // 2), 2), (1.7e-5, 2e9)),
}


@dataclass
class Setting:
    """What a run trains, by which strategy, and on which cluster."""

    choices: Choices
    job: parallel.Job
    strategy: parallel.Strategy
    nodes: int
    options: dict[str, Any]

    @property
    def is_calm(self) -> bool:
        """Whether no rank fails and no message is lost or changed."""
        return not any(name.startswith("fault ") for name in self.choices)


def build(choices: Choices) -> Setting:
    """What the choices stand for. ValueError if they contradict each other."""
    of_run: dict[str, Any] = {name: choices.get(name, values[0]) for name, values in OF_RUN.items()}
    get = of_run.__getitem__
    job = parallel.Job(
        model=partial(model, get("model"), get("width"), get("depth"), get("dropout")),
        data=partial(samples, get("model"), get("loss"), get("samples"), get("seed")),
        optimizer=partial(optimizer, get("optimizer"), get("lr"), get("weight_decay"), get("groups")),
        schedule=None if get("schedule") == "constant" else partial(schedule, get("schedule")),
        loss=loss(get("loss")),
        batch_size=get("batch_size"),
        batch_schedule=partial(grown, get("batch_size")) if get("growing") else None,
        epochs=get("epochs"),
        shards=get("shards"),
        seed=get("seed"),
        clip_norm=get("clip_norm"),
        precision=get("precision"),
    )
    given = {name.removeprefix("strategy."): value for name, value in choices.items() if name.startswith("strategy.")}
    settings = ",".join(f"{name}={value}" for name, value in given.items())
    strategy, _ = strategies.parse(f"{get('strategy')}:{settings}" if settings else get("strategy"))
    compressor = getattr(strategy, "compressor", None)
    if isinstance(compressor, compress.ErrorFeedback):
        strategy = replace(strategy, compressor=WatchedErrorFeedback(compressor.compressor))
    nodes = (1 if get("strategy") == "serial" else get("workers")) * ranks_of_worker(strategy)
    ranks = nodes + strategy.servers
    return Setting(choices, job, strategy, nodes, options(of_run, choices, ranks))


def ranks_of_worker(strategy: Any) -> int:
    """How many ranks share a replica of the model."""
    if isinstance(strategy, parallel.Pipeline):
        settings = components.settings(type(strategy))
        tiles = [int(one) for one in str(getattr(strategy, "spatial", 1)).split("x")]
        return strategy.stages * math.prod([getattr(strategy, name) for name in ("tp", "ep") if name in settings] + tiles)
    replica = getattr(strategy, "replica", None)
    return ranks_of_worker(replica) if replica is not None else 1


def options(of_run: dict[str, Any], choices: Choices, ranks: int) -> dict[str, Any]:
    """The options of `train` that say on which cluster a run trains, and what fails there."""
    network, flops_per_s, jitter = of_run["network"], of_run["flops_per_s"], of_run["jitter"]
    made = NETWORKS[network](ranks) if network in NETWORKS else network
    node = cluster.Node(flops_per_s, 10 * flops_per_s, jitter, {0: 1.3}) if flops_per_s else None
    memory = cluster.Memory(of_run["memory"], (1e-5, 1e9), host=0.1) if of_run["memory"] else None
    plan = cluster.FaultPlan(seed=of_run["seed"])
    if of_run["slow"]:
        plan = plan.slow(of_run["slow"][0] % ranks, of_run["slow"][1])
    for name, value in choices.items():
        if name.startswith("fault "):
            kind, rank, at = value
            plan = getattr(plan, kind)(rank % ranks, at)
    elastic = parallel.Elastic(rejoin=True) if of_run["elastic"] == "rejoin" else of_run["elastic"]
    return {
        "on": cluster.Simulation(made, node, memory=memory),
        "faults": plan,
        "elastic": elastic,
        "on_failure": of_run["on_failure"],
        "timeout": 1e5,
        "deadline": DEADLINE,
    }


DEADLINE = 60.0
"""Real seconds; a run takes a fraction of one."""
