"""Cross entropy of logits that are divided by classes: three numbers a sample travel instead of all logits."""

from __future__ import annotations

from typing import Any

from minidl import kernels
from minidl.cluster.comm import Communicator
from minidl.functional.bind import operand
from minidl.kernels import Array
from minidl.parallel.tensor.collectives import all_reduced
from minidl.tensor import Tensor, record


def vocabulary_cross_entropy(logits: Any, labels: Any, comm: Communicator) -> Tensor:
    """The mean cross entropy, of which every rank has the logits of its classes.

    Parameters
        logits  (..., classes / p): those of classes rank * classes / p and up
        labels  (...), whole numbers, the same on all ranks
        comm    the ranks that divide the classes

    Returns the mean of -log softmax(logits)[label] over all samples, on every rank; the gradient is that of the rank's
    own logits, without a message. Messages in forward: an all-reduce of one number a sample (the largest logit), and
    one of two (the sum of exponentials, the label's logit); whole logits would be `classes` numbers a sample.

    Raises
        TypeError, IndexError for labels that are no classes

    References
        Shoeybi et al., Megatron-LM (arXiv:1909.08053), section 3: "reduces the dimension to batch size times sequence
        length".
    """
    logits = operand(logits)
    count = logits.shape[-1]
    z = logits.data.reshape(-1, count)
    module = kernels.array_module(z)
    classes = module.asarray(labels.data if isinstance(labels, Tensor) else labels).reshape(-1)
    check_classes(classes, count * comm.size)
    local = classes - comm.rank * count
    is_mine = (local >= 0) & (local < count)
    rows, columns = module.arange(len(z)), local * is_mine
    largest = all_reduced(z.max(axis=1), comm, "max")
    exponentials = module.exp(z - largest[:, None])
    sums = module.stack([exponentials.sum(axis=1), (z[rows, columns] - largest) * is_mine])
    total, chosen = all_reduced(sums, comm)
    losses = module.log(total) - chosen

    def vjp(g: Array, needs: Any) -> tuple[Array]:
        gradient = exponentials / total[:, None]
        gradient[rows, columns] -= is_mine
        return ((gradient * (g / len(z))).reshape(logits.shape),)

    return record(losses.mean(), (logits,), vjp)


def check_classes(labels: Array, count: int) -> None:
    """Raise as `functional.cross_entropy` does unless the labels are classes."""
    if labels.dtype.kind not in "iu":
        raise TypeError(f"cross_entropy: labels must be integers, not {labels.dtype}")
    if labels.size and (int(labels.min()) < 0 or int(labels.max()) >= count):
        raise IndexError(
            f"cross_entropy: labels must lie in 0 <= label < {count}, found {int(labels.min())} to {int(labels.max())}"
        )
