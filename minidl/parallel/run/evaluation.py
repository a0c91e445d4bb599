"""Evaluation on the test set: by all ranks together during a run, or in the calling process after it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.data import Dataset
from minidl.grad_mode import no_grad
from minidl.kernels import Array
from minidl.nn import Module
from minidl.parallel.job import Job
from minidl.tensor import Tensor

EVALUATION_BATCH = 256  # samples at a time: the activations of a whole test set need not fit into memory


Predict = Callable[[Array], Tensor | None]
"""The outputs of a model for samples; None on a rank that holds a partition of the model without its outputs."""


def evaluate(
    job: Job,
    predict: Predict,
    dataset: Dataset,
    samples: Array,
    comm: Communicator,
    algorithm: str = "auto",
    copies: int = 1,
) -> tuple[float, float]:
    """Return the mean loss and the accuracy, the fraction of labels that are the likeliest class; ranks share the work.

    Parameters
        samples    the indices that this rank evaluates; with a split model, all ranks of a replica have the same
        comm       the ranks whose sums are added up
        algorithm  all-reduce of the sums
        copies     ranks of a replica that may all have the outputs, those along "tp"

    If the targets are no classes, as in regression, the accuracy is nan. Raises RuntimeError if `predict` returned
    outputs on no rank, or on more ranks of a replica than one or `copies`.
    """
    sums = comm.all_reduce(_sums(job, predict, dataset, samples), algorithm=algorithm)
    if len(dataset) and not sums[1]:
        raise RuntimeError(
            "predict returned None on every rank: of the ranks of a replica, the one that has the model's "
            "outputs returns them"
        )
    if sums[1] > len(dataset) and sums[1] != copies * len(dataset):
        raise RuntimeError(
            f"predict returned {sums[1]:.0f} outputs for the {len(dataset)} samples of the test set: one rank of a "
            'replica, or all along "tp", returns the model\'s outputs, the others None'
        )
    return _means(sums)


def evaluate_ensemble(job: Job, models: Sequence[Module], dataset: Dataset) -> tuple[float, float]:
    """Return the mean loss and the accuracy of the models' mean output, computed by this process alone."""
    for model in models:
        model.eval()

    def mean_output(x: Array) -> Tensor:
        outputs = models[0](x)
        for model in models[1:]:
            outputs = outputs + model(x)
        return outputs if len(models) == 1 else outputs * (1 / len(models))

    return _means(_sums(job, mean_output, dataset, np.arange(len(dataset))))


@no_grad()
def _sums(job: Job, predict: Predict, dataset: Dataset, samples: Array) -> Array:
    """Sum of the losses, number of samples, number of right answers, number of answers; zeros without outputs."""
    total = np.zeros(4, dtype=np.float64)
    for start in range(0, len(samples), EVALUATION_BATCH):
        x, y = dataset[samples[start : start + EVALUATION_BATCH]]
        outputs = predict(x)
        if outputs is None:
            continue
        total[:2] += job.loss(outputs, y).item() * len(x), len(x)
        if _are_classes(y, outputs):
            total[2:] += (outputs.numpy().argmax(axis=-1) == y).sum(), y.size
    return total


def _are_classes(y: Array, outputs: Tensor) -> bool:
    return y.dtype.kind in "iu" and y.shape == outputs.shape[:-1]


def _means(sums: Array) -> tuple[float, float]:
    losses, samples, right, answers = sums
    return float(losses / max(samples, 1)), float(right / answers) if answers else math.nan
