"""The training problem of `course/probes/minibatch_sgd.py`, and its network in numpy for the check's own process."""

from __future__ import annotations

import numpy as np

from course.probes.minibatch_sgd import (
    HELD_OUT,
    SIZES,
    TRAINING,
    WRONG_LABELS,
    Array,
    Samples,
    Sets,
    digits_with_noise,
    samples,
    start,
    trained,
)

__all__ = [
    "HELD_OUT", "SIZES", "TRAINING", "WRONG_LABELS", "Array", "Samples", "Sets", "digits_with_noise", "error",
    "mean_gradient", "outputs", "samples", "start", "trained",
]  # fmt: skip


def outputs(weights: list[Array], x: Array) -> tuple[Array, Array]:
    """The hidden layer (n, 32) and the outputs (n, 10) of the network for x (n, 64)."""
    into, bias, out, bias_out = weights
    hidden = np.maximum(x @ into.T + bias, 0)
    return hidden, hidden @ out.T + bias_out


def error(weights: list[Array], held_out: Samples) -> float:
    """The share of the samples that are classified wrongly, as in HeldOut.error."""
    x, y = held_out
    with np.errstate(all="ignore"):  # the weights may have gone to infinity
        _, logits = outputs(weights, x)
    return float((logits.argmax(axis=1) != y).mean())


def mean_gradient(weights: list[Array], batch: Samples) -> list[Array]:
    """The gradient of the mean cross entropy over a batch, an array for each of the weights."""
    x, y = batch
    hidden, logits = outputs(weights, x)
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    errors = exponentials / exponentials.sum(axis=1, keepdims=True)
    errors[np.arange(len(y)), y] -= 1
    errors /= len(y)
    below = (errors @ weights[2]) * (hidden > 0)
    return [below.T @ x, below.sum(axis=0), errors.T @ hidden, errors.sum(axis=0)]
