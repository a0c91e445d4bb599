"""Evaluation on the test set: by all ranks together during a run, or in the calling process after it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.data import Dataset
from minidl.data.pairs import minibatch, targets
from minidl.grad_mode import no_grad
from minidl.kernels import Array
from minidl.nn import Module
from minidl.parallel.job import Job
from minidl.parallel.mean_loss import counts_of, label_weights, mean_loss
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
    most: int = 0,
) -> tuple[float, float]:
    """Return the mean loss and the accuracy, the fraction of labels that are the likeliest class; ranks share the work.

    Labels that do not count in the loss count in neither.

    Parameters
        samples    the indices that this rank evaluates; with a split model, all ranks of a replica have the same
        comm       the ranks whose sums are added up
        algorithm  all-reduce of the sums
        copies     number of ranks of a replica that may all have the outputs: those along "spatial" and "tp"
        most       samples of the rank that has most, if `predict` sends messages: each rank calls it as often as that
                   one, the last time perhaps without samples

    If the targets are no classes, as in regression, the accuracy is nan; if no label counts, both are nan. Raises
    RuntimeError if `predict` returned outputs on no rank, or on more ranks of a replica than one or `copies`.
    """
    sums = comm.all_reduce(_sums(job, predict, dataset, samples, most), algorithm=algorithm)
    if len(dataset) and not sums[0]:
        raise RuntimeError(
            "predict returned None on every rank: of the ranks of a replica, the one that has the model's "
            "outputs returns them"
        )
    if sums[0] > len(dataset) and sums[0] != copies * len(dataset):
        raise RuntimeError(
            f"predict returned {sums[0]:.0f} outputs for the {len(dataset)} samples of the test set: one rank of a "
            'replica, or all along "spatial" and "tp", returns the model\'s outputs, the others None'
        )
    return _means(sums)


def has_labels(job: Job, dataset: Dataset) -> bool:
    """Whether any label of the dataset counts in the loss; if none does, or there is none, the mean is nan."""
    return len(dataset) > 0 and counts_of(job.loss)(targets(dataset, np.arange(len(dataset)))) > 0


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
def _sums(job: Job, predict: Predict, dataset: Dataset, samples: Array, most: int = 0) -> Array:
    """Samples, sum of the losses, what counts in it, right answers, answers; zeros without outputs."""
    total = np.zeros(5, dtype=np.float64)
    for start in range(0, max(len(samples), most), EVALUATION_BATCH):
        x, y = minibatch(dataset, samples[start : start + EVALUATION_BATCH])
        outputs = predict(x)
        if outputs is None:
            continue
        counted = counts_of(job.loss)(y)
        total[:3] += len(x), mean_loss(job.loss, outputs, y).item() * counted, counted
        if _are_classes(y, outputs):
            weights = label_weights(job.loss, y)
            counts = np.ones(y.shape, bool) if weights is None else weights > 0
            total[3:] += ((outputs.numpy().argmax(axis=-1) == y) & counts).sum(), counts.sum()
    return total


def _are_classes(y: Array, outputs: Tensor) -> bool:
    return y.dtype.kind in "iu" and y.shape == outputs.shape[:-1]


def _means(sums: Array) -> tuple[float, float]:
    _, losses, counted, right, answers = sums
    return float(losses / counted) if counted else math.nan, float(right / answers) if answers else math.nan
