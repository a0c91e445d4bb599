"""The largest entries: TopK, a fixed number of them; Threshold, those above a fixed magnitude."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from minidl.arguments import real_number
from minidl.compress.sparse import Sparse, check_density, count
from minidl.kernels import Array
from minidl.kernels.counterparts import compiled_in


@dataclass
class TopK(Sparse):
    """Sends the k = `density` n entries of largest magnitude out of n; all others are decoded to zero.

    Parameters
        density     fraction of each parameter's entries that is sent, 0 < density <= 1; k is rounded up. A larger one
                    sends more and leaves out less
        all_reduce  "gather" (default), "recursive_doubling" or "split", as in `Sparse`

    Message: k indices (uint32), then k values: 8 k bytes in float32, 1/(2 density) times fewer than dense.

    Notes
        Biased: use `ErrorFeedback`, which sends later what was left out.
        Squared error: at most (1 - k/n) |x|^2.
        Of several equal entries the first are sent. NaN counts as the largest value, so it stays visible.

    Raises
        ValueError  for a density out of range, for integer arrays, for more than 2^32 entries

    References
        Aji and Heafield, Sparse communication for distributed gradient descent (arXiv:1704.05021), section 3.

    Examples
        >>> c = TopK(0.25)
        >>> message = c.encode(np.array([1.0, -5.0, 3.0, 0.5], dtype="float32"))
        >>> message.nbytes, c.decode(message)
        (8, array([ 0., -5.,  0.,  0.], dtype=float32))
    """

    density: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_density("TopK", self.density)

    def pairs(self, size: int) -> int:
        return count(self.density, size)

    def squared_error(self, size: int | None = None) -> float:
        sent = self.density if size is None else self.pairs(size) / size if size else 1.0
        return 1 - sent

    def choose(self, flat: Array) -> Array:
        return largest(flat, self.pairs(flat.size))


def largest(flat: Array, k: int) -> Array:
    """The indices of the k entries of largest magnitude, in rising order; of equal ones, those that come first."""
    if k >= flat.size:
        return np.arange(flat.size)
    among = candidates(flat, k)
    magnitudes = np.abs(flat[among])
    kth = np.partition(magnitudes, -k)[-k]
    if np.isnan(kth):  # NaN is above all numbers: k of the NaN are chosen
        magnitudes, kth = np.isnan(magnitudes), True
    is_chosen = ~(magnitudes <= kth)
    is_chosen[np.flatnonzero(magnitudes == kth)[: k - np.count_nonzero(is_chosen)]] = True
    return among[is_chosen]


@compiled_in("few_entries")
def candidates(flat: Array, k: int) -> Array:
    """Indices, in rising order, that include the k entries of largest magnitude and all equal to the last of them."""
    return np.arange(flat.size)


@compiled_in("few_entries")
def larger_than(flat: Array, bound: float) -> Array:
    """The indices of the entries with a magnitude above `bound`, and of NaN, in rising order."""
    return np.flatnonzero(~(np.abs(flat) <= bound))


@dataclass
class Threshold(Sparse):
    """Sends the entries with |x| > tau; all others are decoded to zero.

    Parameters
        tau         threshold in the unit of the gradient, at least 0; a larger one sends less, 0 leaves out zeros only
        all_reduce  "gather" (default), "recursive_doubling" or "split", as in `Sparse`

    Message: the indices of these k entries (uint32), then their values: 8 k bytes in float32. k changes with the
    gradients in the course of training, and may be 0.

    Notes
        Biased: use `ErrorFeedback`, or gradients below tau are never sent.
        The error of each entry is at most tau, which bounds the residual. Relative to |x| there is no bound.
        NaN is sent, so it stays visible.

    Raises
        ValueError  for a tau below 0, for integer arrays, for more than 2^32 entries

    References
        Strom, Scalable distributed DNN training using commodity GPU cloud computing (Interspeech 2015), which sends the
        signs of the entries, not their values.

    Examples
        >>> c = Threshold(2.0)
        >>> message = c.encode(np.array([1.0, -5.0, 3.0, 0.5], dtype="float32"))
        >>> message.nbytes, c.decode(message)
        (16, array([ 0., -5.,  3.,  0.], dtype=float32))
    """

    tau: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tau = real_number("Threshold: tau", self.tau, at_least=0, at_most=math.inf)

    @np.errstate(over="ignore")  # tau may be beyond the largest number of the dtype
    def choose(self, flat: Array) -> Array:
        return larger_than(flat, self.tau)
