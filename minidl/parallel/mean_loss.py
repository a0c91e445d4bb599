"""The mean loss of a share of a minibatch, and the weight of that share in the whole minibatch.

The means of shares add up to the mean of the minibatch if each is weighted by how much its labels count. Usually that
is the number of samples. A loss that ignores labels or weights classes states how much each label counts, by its
attribute `label_weights(labels)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minidl import functional as F
from minidl.data.loader import Counts
from minidl.functional.cross_entropy import uneven_means
from minidl.kernels import Array
from minidl.tensor import Tensor

Loss = Callable[[Tensor, Array], Tensor]

IGNORED = -100
"""The label of padding, which `classification_loss` ignores, as PyTorch's does."""


def classification_loss(outputs: Tensor, labels: Array) -> Tensor:
    """The mean cross entropy of outputs (n, ..., classes) with labels (n, ...); labels of -100 do not count."""
    return F.cross_entropy(outputs.reshape(-1, outputs.shape[-1]), labels.reshape(-1))


def label_weights(loss: Loss, labels: Array) -> Array | None:
    """How much each label counts in the mean; None: every sample counts the same.

    Raises ValueError unless the loss states a number of at least 0 for each label, or for each sample.
    """
    if loss is classification_loss:
        return labels != IGNORED
    if not _says_what_counts(loss):
        return None
    stated: Any = loss
    weights = np.asarray(stated.label_weights(labels))
    is_one_each = weights.ndim > 0 and weights.shape == labels.shape[: weights.ndim]
    numbers = weights.astype(np.float64)
    if not is_one_each or not (np.isfinite(numbers) & (numbers >= 0)).all():
        raise ValueError(
            f"label_weights of the loss must return how much each label counts, {labels.shape} numbers of at least 0, "
            f"got {weights!r:.60}"
        )
    return weights


def counts_of(loss: Loss) -> Counts:
    """The function that says how much given labels count together."""
    if loss is classification_loss:
        return lambda labels: float(np.count_nonzero(labels != IGNORED))
    if not _says_what_counts(loss):
        return len
    return lambda labels: float(np.sum(np.asarray(label_weights(loss, labels)), dtype=np.float64))


def mean_loss(loss: Loss, outputs: Tensor, labels: Array, of_shard: Loss | None = None) -> Tensor:
    """The mean loss; 0, with gradients of 0, where no label counts.

    Parameters
        loss       the job's
        of_shard   computes the same from the shard of the outputs that a rank has; None: they are whole

    Raises TypeError for a loss that returns no number, ValueError for one that ignores or weights labels and does not
    say so.
    """
    if not counts_of(loss)(labels):
        return (outputs * 0.0).sum()
    with uneven_means() as uneven:
        mean = (of_shard or loss)(outputs, labels)
    if not isinstance(mean, Tensor) or mean.size != 1:
        given = f"a Tensor of shape {mean.shape}" if isinstance(mean, Tensor) else f"{mean!r:.60}"
        advice = "end the function with return" if mean is None else "use .mean(), and not .item()"
        raise TypeError(
            f"Job: loss must return a Tensor with one number, the mean over the samples, got {given}: {advice}"
        )
    if uneven and not _says_what_counts(loss):
        raise ValueError(
            f"the loss averages over {uneven[0]} but does not say so, and the shares of a minibatch cannot be "
            f"weighted: {_SAY_SO}"
        )
    return mean


def check_padding(loss: Loss, labels: Array) -> None:
    """Raise ValueError if there is padding among the labels of classes and the loss does not say that it ignores it."""
    ignored, are_classes = labels == IGNORED, labels.dtype.kind == "i"
    if not _says_what_counts(loss) and are_classes and ignored.any() and (ignored | (labels >= 0)).all():
        raise ValueError(
            f"{ignored.sum()} of {labels.size} labels are {IGNORED}, which marks padding, but the loss does not say "
            f"that they do not count: {_SAY_SO}, such as `lambda labels: labels != {IGNORED}`"
        )


def _says_what_counts(loss: Loss) -> bool:
    return loss is classification_loss or getattr(loss, "label_weights", None) is not None


_SAY_SO = (
    "give an nn.CrossEntropyLoss or nn.NLLLoss with its settings, or set the loss's attribute `label_weights`, a "
    "function that returns how much each label counts"
)
