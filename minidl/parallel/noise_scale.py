"""The gradient noise scale: how large a minibatch still pays, from gradients that data parallelism has anyway."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.data import Dataset
from minidl.kernels import Array
from minidl.nn import Module
from minidl.parallel import vector
from minidl.parallel.job import Loss, classification_loss


@dataclass(frozen=True)
class Noise:
    """The two numbers that say how noisy a gradient is, or estimates of them.

    squared_norm: |G|^2, of the gradient over all samples. trace: tr(Sigma), the variance of one sample's gradient,
    added up over the parameters: the mean gradient of B random samples is off by tr(Sigma)/B in squared norm.

    >>> Noise(squared_norm=0.5, trace=20.0).scale
    40.0
    """

    squared_norm: float
    trace: float

    @property
    def scale(self) -> float:
        """The simple noise scale tr(Sigma) / |G|^2: at that minibatch size noise and gradient are as large.

        Minibatches far below it gain almost in proportion to their size, those far above it hardly at all. Infinite
        where the gradient is 0, or estimated to be below.
        """
        return self.trace / self.squared_norm if self.squared_norm > 0 else float("inf")


def exact(model: Module, dataset: Dataset, loss: Loss = classification_loss) -> Noise:
    """The noise of the model's gradient on that data set, from the gradient of every sample by itself.

    Source: McCandlish et al., An empirical model of large-batch training (arXiv:1812.06162), section 2.2.
    """
    parameters = list(model.parameters())
    total, squares = np.zeros(sum(parameter.size for parameter in parameters)), 0.0
    for i in range(len(dataset)):
        sample = gradient(model, dataset, [i], loss)
        total += sample
        squares += float(sample @ sample)
    mean = total / len(dataset)
    squared_norm = float(mean @ mean)
    return Noise(squared_norm, squares / len(dataset) - squared_norm)


def gradient(
    model: Module, dataset: Dataset, samples: Sequence[int] | Array, loss: Loss = classification_loss
) -> Array:
    """The gradient of the mean loss of those samples, as one vector in float64; the model's gradients are replaced."""
    x, y = dataset[np.asarray(samples)]
    model.zero_grad()
    loss(model(x), y).backward()
    return vector.gradient(list(model.parameters())).astype(np.float64)


def from_two_sizes(small: int, small_square: float, large: int, large_square: float) -> Noise:
    """Estimates from the squared norms of mean gradients over `small` and over `large` random samples.

        |G|^2     = (large |G_large|^2 - small |G_small|^2) / (large - small)
        tr(Sigma) = (|G_small|^2 - |G_large|^2) / (1/small - 1/large)

    because E |G_B|^2 = |G|^2 + tr(Sigma)/B. Both are unbiased, one alone is noisy: see `mean`.
    Errors: ValueError for sizes below 1, or where `small` is not below `large`.

    Source: McCandlish et al. (arXiv:1812.06162), appendix A.1.

    >>> from_two_sizes(1, 21.0, 4, 6.0)  # |G|^2 = 1, tr(Sigma) = 20
    Noise(squared_norm=1.0, trace=20.0)
    """
    if not 1 <= small < large:
        raise ValueError(f"two sizes are needed, 1 <= small < large, got small={small} and large={large}")
    return Noise(
        (large * large_square - small * small_square) / (large - small),
        (small_square - large_square) / (1 / small - 1 / large),
    )


def over_nodes(comm: Communicator, gradient: Array, samples: int) -> Noise:
    """Estimates from the gradients of the nodes' own parts of one minibatch: `gradient`, the mean over `samples`.

    A node's part is the small minibatch (the mean over the nodes of its square counts), all parts together are the
    large one. Every node calls it with equal `samples`, and gets the same. Errors: ValueError on one node.
    """
    if comm.size < 2:
        raise ValueError("one node has one minibatch size: the noise needs two nodes or more")
    # one reduction: the gradient and, behind it, its squared norm
    message = np.append(gradient.astype(np.float64), float(gradient.astype(np.float64) @ gradient))
    total = comm.all_reduce(message) / comm.size
    return from_two_sizes(samples, float(total[-1]), samples * comm.size, float(total[:-1] @ total[:-1]))


def mean(estimates: Iterable[Noise]) -> Noise:
    """Of several estimates, each number's mean, so that `scale` is the ratio of means.

    The mean of their ratios would be far off: an estimate of |G|^2 may be close to 0. Errors: ValueError for none.

    >>> mean([Noise(1.0, 30.0), Noise(3.0, 50.0)]).scale
    20.0
    """
    noises = list(estimates)
    if not noises:
        raise ValueError("there is no estimate to average: give one at least")
    return Noise(
        float(np.mean([noise.squared_norm for noise in noises])), float(np.mean([noise.trace for noise in noises]))
    )
