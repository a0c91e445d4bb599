"""Judging a model by the test set: on the ranks together, or after the run from the weights that they have kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.data import Dataset
from minidl.kernels import Array
from minidl.nn import Module
from minidl.parallel.job import Job
from minidl.tape import no_grad
from minidl.tensor import Tensor

EVALUATION_BATCH = 256  # samples at a time: the activations of a whole test set need not fit into memory


def evaluate(
    job: Job, model: Module, dataset: Dataset, comm: Communicator, algorithm: str = "auto"
) -> tuple[float, float]:
    """The mean loss and the accuracy, the fraction of labels that are the likeliest class; the ranks share the work.

    algorithm: of the all-reduce that adds up what the ranks have found. Where the targets are no classes, as in
    regression, there is no accuracy: it is not a number (nan).
    """
    mine = np.arange(len(dataset))[comm.rank :: comm.size]
    return _means(comm.all_reduce(_sums(job, [model], dataset, mine), algorithm=algorithm))


def evaluate_ensemble(job: Job, models: Sequence[Module], dataset: Dataset) -> tuple[float, float]:
    """The mean loss and the accuracy of the models' mean output, here and now; of one model, its own."""
    return _means(_sums(job, models, dataset, np.arange(len(dataset))))


@no_grad()
def _sums(job: Job, models: Sequence[Module], dataset: Dataset, samples: Array) -> Array:
    """Losses, samples, right answers, answers."""
    total = np.zeros(4, dtype=np.float64)
    for model in models:
        model.eval()
    for x, y in _pieces(dataset, samples):
        outputs = models[0](x)
        for model in models[1:]:
            outputs = outputs + model(x)
        outputs = outputs if len(models) == 1 else outputs * (1 / len(models))
        total[:2] += job.loss(outputs, y).item() * len(x), len(x)
        if _are_classes(y, outputs):
            total[2:] += (outputs.numpy().argmax(axis=-1) == y).sum(), y.size
    return total


def _pieces(dataset: Dataset, samples: Array) -> Iterator[tuple[Any, Any]]:
    for start in range(0, len(samples), EVALUATION_BATCH):
        yield dataset[samples[start : start + EVALUATION_BATCH]]


def _are_classes(y: Array, outputs: Tensor) -> bool:
    return y.dtype.kind in "iu" and y.shape == outputs.shape[:-1]


def _means(sums: Array) -> tuple[float, float]:
    losses, samples, right, answers = sums
    return float(losses / max(samples, 1)), float(right / answers) if answers else math.nan
