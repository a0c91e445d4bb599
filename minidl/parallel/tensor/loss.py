"""Cross entropy of logits sharded by classes: ranks exchange three numbers per sample instead of all logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl import kernels
from minidl.cluster.comm import Communicator
from minidl.functional.bind import operand
from minidl.functional.one_type import FLOAT32, converted
from minidl.kernels import Array
from minidl.parallel.tensor.collectives import all_reduced
from minidl.tensor import Tensor, record


def vocabulary_cross_entropy(logits: Any, labels: Any, comm: Communicator, ignore_index: int = -100) -> Tensor:
    """The mean cross entropy of logits that are sharded over the ranks by classes.

    Parameters
        logits        (..., classes / p): those of this rank's classes, from rank * classes / p on; as many on each rank
        labels        (...), whole numbers, the same on all ranks
        comm          the ranks that share the classes
        ignore_index  the label of samples that do not count

    Returns the mean of -log softmax(logits)[label] over the samples that count, on every rank; the gradient is that of
    the rank's own logits, without a message. As `functional.cross_entropy`, it is float32 for logits of 16 bits.

    Messages in forward: an all-reduce of one number per sample (the largest logit), and one of two (the sum of
    exponentials, the label's logit); whole logits would be `classes` numbers per sample.

    Raises
        TypeError, IndexError, ValueError for labels that are not classes, or not one per sample
        CollectiveMismatch               for ranks with different numbers of classes

    References
        Shoeybi et al., Megatron-LM (arXiv:1909.08053), section 3: "reduces the dimension to batch size times sequence
        length".
    """
    logits = converted(operand(logits), FLOAT32)
    count = logits.shape[-1]
    z, shape, dtype = logits.data.reshape(-1, count), logits.shape, logits.dtype
    module = kernels.array_module(z)
    classes = module.asarray(labels.data if isinstance(labels, Tensor) else labels)
    if classes.shape != logits.shape[:-1]:
        raise ValueError(f"cross_entropy: labels of shape {logits.shape[:-1]} expected, got {classes.shape}")
    classes = classes.reshape(-1)
    counts = classes != ignore_index
    check_classes(classes[counts], count * comm.size)
    local = classes.astype(np.int64) - comm.rank * count  # in uint8, a negative difference would be a class
    is_mine = (local >= 0) & (local < count)
    rows, columns = module.arange(len(z)), local * is_mine
    largest = all_reduced(z.max(axis=1), comm, "max", label=f"the largest of {count} logits of each rank")
    exponentials = module.exp(z - largest[:, None])
    sums = module.stack([exponentials.sum(axis=1), (z[rows, columns] - largest) * is_mine])
    both = all_reduced(sums, comm)
    total, chosen = both[0], both[1]
    losses, samples = (module.log(total) - chosen) * counts, int(counts.sum())

    def vjp(g: Array, needs: Any) -> tuple[Array]:
        gradient = exponentials / total[:, None]
        gradient[rows, columns] -= is_mine
        return ((gradient * (g / max(samples, 1) * counts)[:, None]).astype(dtype).reshape(shape),)

    return record((losses.sum() / samples if samples else losses.sum() * np.nan).astype(z.dtype), (logits,), vjp)


def check_classes(labels: Array, count: int) -> None:
    """Raise as `functional.cross_entropy` does unless the labels are classes."""
    if labels.dtype.kind not in "iu":
        raise TypeError(f"cross_entropy: labels must be integers, not {labels.dtype}")
    if labels.size and (int(labels.min()) < 0 or int(labels.max()) >= count):
        raise IndexError(
            f"cross_entropy: labels must lie in 0 <= label < {count}, found {int(labels.min())} to {int(labels.max())}"
        )
