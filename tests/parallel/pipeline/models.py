"""Models that are hard to cut, each in a job that trains in a fraction of a second."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from minidl import Tensor, nn, random
from minidl import functional as F
from minidl.parallel import Job
from tests.parallel.jobs import small_job
from tests.parallel.test_split_models import texts

RECURRENT = "recurrent layers over whole numbers"


class Cut(nn.Module):
    """A model that is given by its stages."""

    def forward(self, x: Any) -> Any:
        return nn.run_stages(self.stages(), x)


class Skips(Cut):
    """The samples and the first activations travel to the last stage, over every cut."""

    def __init__(self) -> None:
        self.first, self.second, self.third = nn.Linear(5, 6), nn.Linear(6, 6), nn.Linear(6, 6)
        self.head = nn.Linear(6 + 6 + 5, 3)

    def stages(self) -> list[nn.Stage]:
        return [
            nn.Stage(lambda x: (Tensor(x), self.first(x)), self.first),
            nn.Stage(lambda all: (*all, F.tanh(self.second(all[1]))), self.second),
            nn.Stage(lambda all: (all[0], all[1], all[2] + self.third(all[2])), self.third),
            nn.Stage(lambda all: self.head(F.cat(list(all), axis=1)), self.head),
        ]


class Branches(Cut):
    """One branch is computed by the second stage, the other by the third; the first one returns a tensor twice."""

    def __init__(self) -> None:
        self.trunk, self.left, self.right = nn.Linear(5, 6), nn.Linear(6, 4), nn.Linear(6, 4)
        self.head = nn.Linear(4, 3)

    def stages(self) -> list[nn.Stage]:
        def twice(x: Any) -> tuple[Tensor, Tensor]:
            h = F.tanh(self.trunk(x))
            return h, h

        return [
            nn.Stage(twice, self.trunk),
            nn.Stage(lambda both: (F.relu(self.left(both[0])), both[1]), self.left),
            nn.Stage(lambda both: (both[0], F.tanh(self.right(both[1]))), self.right),
            nn.Stage(lambda both: self.head(both[0] * both[1]), self.head),
        ]


class Recurrent(Cut):
    """An LSTM of two layers, one on each of two stages; its samples are whole numbers."""

    def __init__(self) -> None:
        self.embedding, self.head = nn.Embedding(11, 5), nn.Linear(6, 11)
        self.lower, self.upper = nn.LSTM(5, 6, batch_first=True), nn.LSTM(6, 6, batch_first=True)

    def stages(self) -> list[nn.Stage]:
        return [
            nn.Stage(self.embedding, self.embedding),
            nn.Stage(lambda x: self.lower(x)[0], self.lower),
            nn.Stage(lambda x: self.upper(x)[0], self.upper),
            nn.Stage(self.head, self.head),
        ]


class Ties(Cut):
    """The first, the third and the last stage use one weight."""

    def __init__(self) -> None:
        self.weight, self.shift = nn.Parameter(np.eye(5)[:3] + 0.1), nn.Parameter(np.zeros(5))
        self.between = nn.Linear(3, 3)

    def stages(self) -> list[nn.Stage]:
        return [
            nn.Stage(lambda x: F.linear(Tensor(x), self.weight), self.weight),
            nn.Stage(lambda h: F.tanh(self.between(h)), self.between),
            nn.Stage(lambda h: h @ self.weight + self.shift, self.weight, self.shift),
            nn.Stage(lambda h: F.linear(h, self.weight), self.weight),
        ]


class Detached(Cut):
    """The third stage sends no gradient back: the first two learn nothing."""

    def __init__(self) -> None:
        self.layers = nn.ModuleList([nn.Linear(5, 6), nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)])

    def stages(self) -> list[nn.Stage]:
        first, second, third, last = self.layers
        return [
            nn.Stage(first, first),
            nn.Stage(lambda h: F.tanh(second(h)), second),
            nn.Stage(lambda h: third(h.detach()), third),
            nn.Stage(lambda h: last(F.tanh(h)), last),
        ]


class Noisy(nn.Module):
    """A layer whose own code draws a mask and noise."""

    def __init__(self, n_in: int, n_out: int) -> None:
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x: Any) -> Tensor:
        h = F.dropout(self.linear(x), 0.37, training=self.training)
        return h + 0.13 * random.generator().standard_normal(h.shape) if self.training else h


class Drawing(Cut):
    """Every stage draws masks in its own code; three call one dropout layer, and one is two layers that draw."""

    def __init__(self) -> None:
        self.first, self.two, self.third = nn.Linear(5, 6), nn.Sequential(Noisy(6, 7), Noisy(7, 6)), Noisy(6, 6)
        self.head, self.drop = nn.Linear(6, 3), nn.Dropout(0.23)

    def stages(self) -> list[nn.Stage]:
        def first(x: Any) -> Tensor:
            return F.dropout(self.drop(self.first(x)), 0.37, training=self.training)

        return [
            nn.Stage(first, self.first, self.drop),
            nn.Stage(self.two, self.two),
            nn.Stage(lambda h: self.drop(F.tanh(self.third(self.drop(h)))), self.third, self.drop),
            nn.Stage(lambda h: self.head(self.drop(h)), self.head, self.drop),
        ]


def normalized() -> nn.Module:
    """Batch norm that averages over all minibatches and batch norm that forgets, dropout between them."""
    return nn.Sequential(
        nn.Linear(5, 8), nn.BatchNorm1d(8, momentum=None), nn.Dropout(0.4), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(8, 6), nn.BatchNorm1d(6, affine=False), nn.Tanh(), nn.Linear(6, 3),
    )  # fmt: skip


def frozen_between() -> nn.Module:
    """Batch norm whose weights are frozen, between layers that learn."""
    model = normalized()
    for layer in list(model)[1:6]:
        layer.requires_grad_(False)
    return model


class Unused(Cut):
    """The first unit returns a tensor that no later unit uses, and whole numbers, which have no gradient."""

    def __init__(self) -> None:
        self.first, self.second, self.third = nn.Linear(5, 8), nn.Linear(8, 6), nn.Linear(6, 3)

    def stages(self) -> list[nn.Stage]:
        def first(x: Any) -> Any:
            h = self.first(x)
            return h, h * 2, F.argmax(h, axis=1)

        def second(passed: Any) -> Any:
            h, unused, largest = passed
            return self.second(F.tanh(h)), unused, largest

        def third(passed: Any) -> Any:
            h, _, largest = passed
            return self.third(h), largest

        last = nn.Stage(lambda both: both[0] + both[1].reshape(-1, 1) * 0.1)
        return [nn.Stage(first, self.first), nn.Stage(second, self.second), nn.Stage(third, self.third), last]


def frozen(first: int, last: int) -> nn.Module:
    model = nn.models.MLP(5, 8, 7, 6, 3)
    for layer in list(model.layers)[first:last]:
        layer.requires_grad_(False)
    return model


def with_layers_without_parameters() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(0.3), nn.Sigmoid(), nn.Linear(8, 3))


def checkpointed_parts() -> nn.Module:
    """Each of its two stages calls a model that is checkpointed."""
    first, second = nn.models.MLP(5, 8, 7, 6), nn.models.MLP(6, 7, 3)
    return nn.Sequential(nn.checkpointing(first, segments=2), nn.Tanh(), nn.Linear(6, 6), nn.checkpointing(second))


def in_double(make: Any) -> nn.Module:
    return make().double()


CASES: dict[str, Job] = {
    RECURRENT: small_job(model=partial(in_double, Recurrent), data=texts),
    "batch norm and dropout": small_job(model=partial(in_double, normalized), batch_size=32),
    "frozen batch norm in the middle": small_job(model=partial(in_double, frozen_between), batch_size=32),
    **{
        name: small_job(model=partial(in_double, make))
        for name, make in {
            "skips over all cuts": Skips,
            "branches in two stages": Branches,
            "a weight of three stages": Ties,
            "a stage without a gradient of its input": Detached,
            "checkpointed parts": checkpointed_parts,
            "tensors that no stage uses": Unused,
            "masks that the stages' own code draws": Drawing,
            "first stage frozen": partial(frozen, 0, 1),
            "last stage frozen": partial(frozen, 3, 4),
            "a stage without parameters": with_layers_without_parameters,
        }.items()
    },
}
