"""Evaluation on the test set: by all ranks together during a run, or in the calling process after it."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    """Return the mean loss and the accuracy, the fraction of labels that are the likeliest class; ranks share the work.

    algorithm: the all-reduce that adds up the ranks' sums. If the targets are no classes, as in regression, the
    accuracy is nan.
    """
    mine = np.arange(len(dataset))[comm.rank :: comm.size]
    return _means(comm.all_reduce(_sums(job, [model], dataset, mine), algorithm=algorithm))


def evaluate_ensemble(job: Job, models: Sequence[Module], dataset: Dataset) -> tuple[float, float]:
    """Return the mean loss and the accuracy of the models' mean output, computed by this process alone."""
    return _means(_sums(job, models, dataset, np.arange(len(dataset))))


@no_grad()
def _sums(job: Job, models: Sequence[Module], dataset: Dataset, samples: Array) -> Array:
    """Sum of the losses, number of samples, number of right answers, number of answers."""
    total = np.zeros(4, dtype=np.float64)
    for model in models:
        model.eval()
    for start in range(0, len(samples), EVALUATION_BATCH):
        x, y = dataset[samples[start : start + EVALUATION_BATCH]]
        outputs = models[0](x)
        for model in models[1:]:
            outputs = outputs + model(x)
        outputs = outputs if len(models) == 1 else outputs * (1 / len(models))
        total[:2] += job.loss(outputs, y).item() * len(x), len(x)
        if _are_classes(y, outputs):
            total[2:] += (outputs.numpy().argmax(axis=-1) == y).sum(), y.size
    return total


def _are_classes(y: Array, outputs: Tensor) -> bool:
    return y.dtype.kind in "iu" and y.shape == outputs.shape[:-1]


def _means(sums: Array) -> tuple[float, float]:
    losses, samples, right, answers = sums
    return float(losses / max(samples, 1)), float(right / answers) if answers else math.nan
