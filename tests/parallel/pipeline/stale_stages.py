"""Stages of an asynchronous pipeline in one process, which record what they do; and delayed SGD, their oracle."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from minidl import Tensor, backward, nn, optim
from minidl import functional as F
from minidl.parallel import pipeline
from minidl.parallel.pipeline.action import Action
from minidl.parallel.pipeline.interpreter import play
from minidl.parallel.pipeline.messages import Message
from minidl.parallel.pipeline.weight_versions import WeightVersions, versions_at_entry

RATE = 0.1


def pipedream(stages: int, minibatches: int) -> pipeline.Schedule:
    """1F1B with an update after every backward, written down."""
    lines = [list(pipeline.OneFOneB(stages, minibatches).actions(stage))[:-1] for stage in range(stages)]
    return pipeline.Listed.read(
        [" ".join(f"{a.short} U{a.micro_batch}" if a.kind == "B" else a.short for a in line) for line in lines]
    )


def stage_model(stage: int, sizes: list[int]) -> nn.Module:
    """A linear layer, with tanh before it on all stages but the first."""
    generator = np.random.default_rng(stage)
    layer = nn.Linear(sizes[stage], sizes[stage + 1]).double()
    layer.weight.copy_(generator.normal(size=layer.weight.shape) / np.sqrt(sizes[stage]))
    layer.bias.copy_(generator.normal(size=layer.bias.shape))
    return nn.Sequential(layer) if stage == 0 else nn.Sequential(nn.Tanh(), layer)


def minibatch(number: int, sizes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng((7, number))
    return generator.normal(size=(4, sizes[0])), generator.integers(0, sizes[-1], 4)


class StaleStage:
    """The operations of one stage.

    history    weights of each version
    used       the version of each minibatch's forward
    kept       after each update, the versions that are kept, and their bytes
    live       after each update, the bytes of all arrays of weights that are still in memory
    gradients  that were applied, by minibatch
    """

    def __init__(self, stage: int, sizes: list[int], mail: dict[Message, Any], **versions: Any) -> None:
        self.stage, self.sizes, self.mail = stage, sizes, mail
        self.model = stage_model(stage, sizes)
        self.versions = WeightVersions(self.model, **versions)
        self.optimizer = optim.SGD(self.model.parameters(), lr=RATE, momentum=0.9)
        self.alive: dict[int, tuple[Tensor, Tensor]] = {}
        self.received: Any = None
        self.to_send: Any = None
        self.history = [self.model.state_dict()]
        self.used: list[int] = []
        self.kept: list[tuple[list[int], int]] = []
        self.arrays = {id(p.data): weakref.ref(p.data) for p in self.model.parameters()}
        self.live: list[int] = []
        self.gradients: list[dict[str, np.ndarray]] = []

    def has(self, message: Message) -> bool:
        return message in self.mail

    def receive(self, message: Message) -> None:
        self.received = self.mail.pop(message)

    def send(self, message: Message) -> None:
        self.mail[message] = self.to_send

    def compute(self, action: Action) -> None:
        m = action.micro_batch
        x, y = minibatch(m, self.sizes)
        is_last = self.stage == len(self.sizes) - 2
        match action.kind:
            case "F":
                leaf = Tensor(x) if self.stage == 0 else Tensor(self.received, requires_grad=True)
                with self.versions.forward(m):
                    out = self.model(leaf)
                self.used.append(self.versions.used[m])
                self.alive[m] = leaf, F.cross_entropy(out, y) if is_last else out
                self.to_send = out.numpy()
            case "B":
                self.model.zero_grad()
                leaf, out = self.alive.pop(m)
                with self.versions.backward(m):
                    backward([out], [None if is_last else self.received])
                self.to_send = leaf.grad
                self.gradients.append({name: p.grad.copy() for name, p in self.model.named_parameters()})
            case "U":
                with self.versions.update():
                    self.optimizer.step()
                self.kept.append((self.versions.kept, self.versions.nbytes))
                self.arrays |= {id(p.data): weakref.ref(p.data) for p in self.model.parameters()}
                self.live.append(sum(array().nbytes for array in self.arrays.values() if array() is not None))
                self.history.append(self.model.state_dict())


def run(sizes: list[int], minibatches: int, stashing: bool = True, vertical_sync: bool = False) -> list[StaleStage]:
    """Train the stages on so many minibatches."""
    schedule = pipedream(len(sizes) - 1, minibatches)
    mail: dict[Message, Any] = {}
    at_entry = versions_at_entry(schedule) if vertical_sync else None
    stages = [StaleStage(s, sizes, mail, stashing=stashing, at_entry=at_entry) for s in range(schedule.stages)]
    play(schedule, stages)
    assert not mail
    return stages


def gradient(sizes: list[int], number: int, weights: list[dict[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
    """The gradient of a minibatch's loss for one whole model, at these weights of its stages."""
    models = [stage_model(stage, sizes) for stage in range(len(weights))]
    x, y = minibatch(number, sizes)
    out = Tensor(x)
    for model, values in zip(models, weights, strict=True):
        model.load_state_dict(values)
        out = model(out)
    F.cross_entropy(out, y).backward()
    return [{name: p.grad for name, p in model.named_parameters()} for model in models]


def delayed_sgd(sizes: list[int], minibatches: int, version_of: Any) -> list[list[dict[str, np.ndarray]]]:
    """The weights of each stage after each update, if the gradient of minibatch m is that at version_of(stage, m)."""
    models = [stage_model(stage, sizes) for stage in range(len(sizes) - 1)]
    optimizers = [optim.SGD(model.parameters(), lr=RATE, momentum=0.9) for model in models]
    history = [[model.state_dict()] for model in models]
    for m in range(minibatches):
        gradients = gradient(sizes, m, [versions[version_of(s, m)] for s, versions in enumerate(history)])
        for model, optimizer, values, versions in zip(models, optimizers, gradients, history, strict=True):
            for name, parameter in model.named_parameters():
                parameter.grad = values[name]
            optimizer.step()
            versions.append(model.state_dict())
    return history
