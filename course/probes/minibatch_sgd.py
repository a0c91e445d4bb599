"""Probes for the answers of chapter 02: the batches of an epoch, and a small training problem.

The problem has digits sorted by class, some with a wrong label; the held-out sets report errors only. Its arrays are
made here from a seed, in the check's process as well as in the student's. The probe `trained` has a student's function
train on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl import data, kernels, nn, no_grad
from minidl.random import Purpose, stream

Array = NDArray[Any]
Samples = tuple[Array, Array]
Sets = tuple[Samples, Samples, Samples]

SIZES = (64, 32, 10)
TRAINING, HELD_OUT = 300, 300
WRONG_LABELS = 0.2
"""The share of the training samples with a wrong label; a network that memorises them generalises worse."""


def listed(function: Callable[..., Any], n: int, batch_size: int, seed: int, epoch: int) -> Any:
    """Probe: the batches as lists, from any iterable; at most n + 2 batches."""
    batches = function(n, batch_size, seed, epoch)
    if not isinstance(batches, Iterable):
        return batches
    return [list(batch) if isinstance(batch, Iterable) else batch for batch in list(islice(batches, n + 2))]


def kept(function: Callable[..., Any], n: int, batch_size: int, pairs: Sequence[tuple[int, int]]) -> bool:
    """Probe: whether the batches of each pair of seed and epoch are the same after those of all pairs were made."""
    made = [list(islice(function(n, batch_size, *pair), n + 2)) for pair in pairs]
    first = [list(map(list, epoch)) for epoch in made]
    again = [[list(batch) for batch in islice(function(n, batch_size, *pair), n + 2)] for pair in pairs]
    return first == again


def orders_of(
    function: Callable[..., Any], n: int, batch_size: int, pairs: Iterable[tuple[int, int]]
) -> list[list[Any]]:
    """Probe: the order of the samples for each pair of seed and epoch."""
    return [[index for batch in listed(function, n, batch_size, *pair) for index in batch] for pair in pairs]


class HeldOut:
    """Samples that only report a model's error rate on them: `held_out.error(model)`, from 0 to 1.

    errors: the reported ones, in order. weights: the model's weights at each call.
    """

    def __init__(self, x: Array, y: Array) -> None:
        self._x, self._y = x, y
        self.errors: list[float] = []
        self.weights: list[list[Array]] = []

    def __len__(self) -> int:
        return len(self._y)

    def error(self, model: nn.Module) -> float:
        """The share of these samples for which the model's largest output is not that of their class."""
        with no_grad():
            read = model(self._x).numpy().argmax(axis=1)
        self.weights.append([parameter.numpy().copy() for parameter in model.parameters()])
        self.errors.append(float((read != self._y).mean()))
        return self.errors[-1]


def samples(seed: int) -> Sets:
    """(x, y) to train on, to validate with and to test with; x: (n, 64) float32, y: (n,) int64."""
    splits = data.digits()
    x = np.concatenate([part.x for part in splits]).reshape(-1, SIZES[0])
    y = np.concatenate([part.y for part in splits])
    rng = stream(Purpose.MANUAL, seed, "noisy digits")
    chosen = rng.permutation(len(y))
    training, validation, test = np.split(chosen[: TRAINING + 2 * HELD_OUT], [TRAINING, TRAINING + HELD_OUT])
    labels = y[training]
    wrong = rng.random(TRAINING) < WRONG_LABELS
    labels[wrong] = (labels[wrong] + rng.integers(1, SIZES[-1], wrong.sum())) % SIZES[-1]
    by_class = np.argsort(labels, kind="stable")
    return (x[training[by_class]], labels[by_class]), (x[validation], y[validation]), (x[test], y[test])


def start(seed: int) -> list[Array]:
    """The weights and biases of SIZES with which training begins."""
    rng = stream(Purpose.MANUAL, seed, "first weights for noisy digits")
    arrays = []
    for inputs, outputs in pairwise(SIZES):
        arrays.append((rng.standard_normal((outputs, inputs)) * np.sqrt(2 / inputs)).astype(np.float32))
        arrays.append(np.zeros(outputs, np.float32))
    return arrays


def network(weights: list[Array]) -> nn.models.MLP:
    """A network of SIZES with these weights."""
    model = nn.models.MLP(*SIZES)
    model.load_state_dict(dict(zip(model.state_dict(), weights, strict=True)))
    return model


def digits_with_noise(seed: int = 0) -> tuple[nn.models.MLP, data.Dataset, HeldOut, HeldOut]:
    """A network and a training, a validation and a test set, to try out a training loop on.

    >>> model, train_set, validation_set, test_set = digits_with_noise(seed=0)
    >>> train_set[np.array([0, 299])][1]
    array([0, 9])
    """
    training, validation, test = samples(seed)
    return network(start(seed)), data.Dataset(*training, "noisy digits"), HeldOut(*validation), HeldOut(*test)


def trained(function: Callable[..., Any], weights: list[Array], sets: Sets, *options: Any) -> dict[str, Any]:
    """Probe: let `function` train; what it returned, the final weights, and what the held-out sets noted."""
    kernels.use("numpy")  # a first call of compiled kernels may take longer than the whole training
    model = network(weights)
    training, validation, test = sets
    validation_set, test_set = HeldOut(*validation), HeldOut(*test)
    returned = function(model, data.Dataset(*training), validation_set, test_set, *options)
    return {
        "returned": returned,
        "weights": [parameter.numpy() for parameter in model.parameters()],
        "validated": validation_set.weights,
        "tested": test_set.weights,
    }
