"""The gradient noise scale: how large a minibatch still pays, from gradients that data parallelism computes anyway.

With g_i the gradient of sample i of N, and G_B the mean over a minibatch of B random samples:

    G                = mean of all g_i                            the gradient over the whole training set
    tr(Sigma)        = mean of all |g_i - G|^2                    the variance of one sample's gradient
    E |G_B|^2        = |G|^2 + tr(Sigma) / B                      B samples drawn with replacement
    E |G_B|^2        = |G|^2 + tr(Sigma) / B (N - B) / (N - 1)    without: B different samples, as in a shuffled epoch

Without replacement the noise vanishes at B = N, where the minibatch is the training set. All of this assumes that a
sample's gradient depends on that sample alone: no batch norm in training mode, no dropout.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.data import Dataset
from minidl.data.pairs import minibatch
from minidl.kernels import Array
from minidl.nn import Module
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.mean_loss import Loss, classification_loss


@dataclass(frozen=True)
class Noise:
    """The two numbers that say how noisy a gradient is, or estimates of them.

    squared_norm  |G|^2, of the gradient over all samples of the training set
    trace         tr(Sigma), the variance of one sample's gradient, summed over the parameters, divided by N, not N - 1

    >>> Noise(squared_norm=0.5, trace=20.0).scale
    40.0
    """

    squared_norm: float
    trace: float

    @property
    def scale(self) -> float:
        """The simple noise scale tr(Sigma) / |G|^2, in samples: at that minibatch size noise and gradient are equal.

        Minibatches far below it gain almost in proportion to their size, those far above it hardly at all.
        Infinite if |G|^2 is 0 or estimated below 0; negative if only tr(Sigma) is; nan if either is nan.
        """
        if isnan(self.squared_norm) or isnan(self.trace):
            return float("nan")
        return self.trace / self.squared_norm if self.squared_norm > 0 else float("inf")


def exact(model: Module, dataset: Dataset, loss: Loss = classification_loss) -> Noise:
    """Return the noise of the model's gradient on that data set, from the gradient of every single sample.

    Raises ValueError for a data set without samples.

    References
        McCandlish et al., An empirical model of large-batch training (arXiv:1812.06162), section 2.2.
    """
    if not len(dataset):
        raise ValueError("the data set has no samples: a gradient needs one at least")
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
    """Return the gradient of the mean loss of those samples as one float64 vector; replaces the model's gradients.

    Raises ValueError without samples.
    """
    if not len(samples):
        raise ValueError("a gradient needs one sample at least, got none")
    x, y = minibatch(dataset, np.asarray(samples))
    model.zero_grad()
    loss(model(x), y).backward()
    return vector.gradient(list(model.parameters())).astype(np.float64)


def from_two_sizes(
    small: int, small_square: float, large: int, large_square: float, population: int | None = None
) -> Noise:
    """Unbiased estimates from the squared norms of mean gradients over `small` and over `large` random samples.

        tr(Sigma) = (|G_small|^2 - |G_large|^2) / (c(small) - c(large))
        |G|^2     = |G_large|^2 - c(large) tr(Sigma)

    c(B) is the factor of tr(Sigma) in E |G_B|^2: 1/B with replacement, (N - B) / (B (N - 1)) without.

    Parameters
        small, large  samples in the two minibatches, 1 <= small < large
        population    N, the samples in the training set, if each minibatch holds different samples, as every minibatch
                      of a shuffled epoch does. None: the samples are independent, drawn with replacement or from an
                      endless supply

    Returns
        Noise of the whole training set: the same two numbers as `exact` on it, in the mean over random minibatches.
        One estimate alone is noisy: average with `mean`. At large = population, squared_norm is |G|^2 itself.

    Raises
        ValueError for sizes below 1, for `small` not below `large`, or for `large` above the population.

    References
        McCandlish et al. (arXiv:1812.06162), appendix A.1, with replacement; Cochran, Sampling techniques (1977),
        theorem 2.2, for the factor of a finite population.

    >>> from_two_sizes(1, 21.0, 4, 6.0)  # |G|^2 = 1, tr(Sigma) = 20
    Noise(squared_norm=1.0, trace=20.0)
    >>> from_two_sizes(1, 21.0, 5, 1.0, population=5)  # all 5 samples: no noise is left
    Noise(squared_norm=1.0, trace=20.0)
    """
    if not 1 <= small < large:
        raise ValueError(f"two sizes are needed, 1 <= small < large, got small={small} and large={large}")
    if population is not None and large > population:
        raise ValueError(f"a minibatch of {large} different samples cannot come from a population of {population}")
    factor = _noise_factor(large, population)
    trace = (small_square - large_square) / (_noise_factor(small, population) - factor)
    return Noise(large_square - factor * trace, trace)


def _noise_factor(size: int, population: int | None) -> float:
    """The factor of tr(Sigma) in E |G_B|^2 for minibatches of that size."""
    return 1 / size if population is None else (population - size) / (size * (population - 1))


def over_nodes(comm: Communicator, gradient: Array, samples: int, population: int | None = None) -> Noise:
    """Estimates from the gradients of all nodes: each computes the mean gradient of its own shard of one minibatch.

    A node's shard is the small minibatch (its squared norm is averaged over the nodes), all shards together are the
    large one: see `from_two_sizes`.

    Parameters
        comm        every node calls, and all get the same estimate
        gradient    mean gradient over this node's shard, as one vector
        samples     samples in this node's shard, as many on every node: leave out a last, smaller minibatch that cannot
                    be shared equally
        population  samples in the training set, where a minibatch holds different samples that are dealt to the nodes
                    at random, as in `parallel.train` with shards="shuffled". None: independent samples. Other shards
                    ("fixed", "by_label") are not random samples of the whole training set: the estimates are biased

    Raises
        ValueError on one node, and on all nodes where their numbers of samples differ.
    """
    if comm.size < 2:
        raise ValueError("one node has one minibatch size: the noise needs two nodes or more")
    mine = np.asarray(gradient, np.float64).ravel()
    # one reduction: the gradient, its squared norm, and two moments that reveal unequal numbers of samples
    total = comm.all_reduce(np.concatenate([mine, [mine @ mine, samples, samples**2]])) / comm.size
    mean_gradient, (square, mean_samples, mean_square) = total[:-3], total[-3:]
    if mean_square != mean_samples**2:
        raise ValueError(
            f"the nodes have different numbers of samples, {samples} on rank {comm.rank} and {mean_samples:g} on "
            "average: leave this minibatch out"
        )
    whole = float(mean_gradient @ mean_gradient)
    return from_two_sizes(samples, float(square), samples * comm.size, whole, population)


def mean(estimates: Iterable[Noise]) -> Noise:
    """Return the mean of several estimates, number by number, so that its `scale` is a ratio of means.

    A mean of ratios would be far off, since an estimate of |G|^2 may be close to 0. Raises ValueError for no estimates.

    >>> mean([Noise(1.0, 30.0), Noise(3.0, 50.0)]).scale
    20.0
    """
    noises = list(estimates)
    if not noises:
        raise ValueError("there is no estimate to average: give one at least")
    return Noise(
        float(np.mean([noise.squared_norm for noise in noises])), float(np.mean([noise.trace for noise in noises]))
    )
