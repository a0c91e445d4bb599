"""One bit per number: OneBit, with two means per column; Sign, with one scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minidl.compress.quantizer import LANES, Quantizer, partial_sums, two_values
from minidl.kernels import Array
from minidl.kernels.counterparts import compiled_in


@dataclass
class OneBit(Quantizer):
    """Replaces each number by the mean of its column's negative numbers, or of its other numbers.

    A weight of shape (rows, ...) is read as a matrix with that many rows; a vector is one column. No other two values
    per column have a smaller squared error than these means.

    Message: two means per column (float32), then one bit per number: 8 columns + ceil(n / 8) bytes, that is
    1 + 64 / rows bits per number. A matrix with few rows saves less; with one row its message is longer than the array.

    Notes
        Biased: use `ErrorFeedback`. The squared error of a column x is at most (1 - 1/rows) |x|^2.

    References
        Seide et al., 1-bit stochastic gradient descent (Interspeech 2014); Dryden et al., Communication quantization
        for data-parallel training of deep neural networks (MLHPC 2016).

    Examples
        >>> c = OneBit()
        >>> message = c.encode(np.array([1.0, -5.0, 3.0, -1.0]))
        >>> message.nbytes, c.decode(message)
        (9, array([ 2., -3.,  2., -3.]))
    """

    symbols = 2

    def squared_error(self, size: int | None = None) -> float | None:
        """1 - 1/n: the bound 1 - 1/rows, with at most n rows."""
        return None if size is None else 1 - 1 / max(size, 1)

    def count_scales(self, shape: tuple[int, ...]) -> int:
        return 2 * columns(shape)

    def quantize(self, array: Array) -> tuple[Array, Array]:
        flat, width = array.reshape(-1), columns(array.shape)
        if not flat.size:
            return np.zeros(2 * width, np.float32), np.empty(0, bool)
        sums, below = sums_by_sign(flat, width if width > 1 else LANES)
        below = below.reshape(-1, width).sum(axis=0)
        counts = np.stack([flat.size // width - below, below])
        means = sums.reshape(2, -1, width).sum(axis=1) / np.maximum(counts, 1)
        return means.astype(np.float32).reshape(-1), flat < 0

    def dequantize(self, scales: Array, symbols: Array, shape: tuple[int, ...]) -> Array:
        return two_values(symbols, scales.reshape(2, columns(shape))) if symbols.size else scales[:0]


@compiled_in("few_bits")
def sums_by_sign(flat: Array, period: int) -> tuple[Array, Array]:
    """The sums of numbers not below zero, and below it (float64), for a vector read as rows of `period` numbers.

    Sums are taken by columns, row after row. Returns also how many numbers are below zero.
    """
    rows = np.zeros((-(-flat.size // period), period))
    rows.reshape(-1)[: flat.size] = flat
    is_below = rows < 0
    sums = [np.where(members, rows, 0).sum(axis=0, initial=0.0) for members in (~is_below, is_below)]
    return np.stack(sums), is_below.sum(axis=0)


def columns(shape: tuple[int, ...]) -> int:
    """Number of columns of an array read as a matrix of shape[0] rows; 1 for vectors and scalars."""
    return int(np.prod(shape[1:]))


@dataclass
class Sign(Quantizer):
    """Sends the sign of every number, and the mean of all magnitudes as their scale; zero counts as positive.

    Message: the mean (float32), then one bit per number: 4 + ceil(n / 8) bytes.

    Notes
        Biased: use `ErrorFeedback`; without it there are convex functions that are not minimised.
        Squared error: |x|_2^2 - |x|_1^2 / n, at most (1 - 1/n) |x|^2 for n numbers.
        An entry is sent at the mean magnitude. With `ErrorFeedback`, entries that are larger in every step pile up in
        the residual until its mean magnitude has reached the largest of them: 17 to 31 times the gradient after 3,000
        steps with the same 768 normal numbers, several hundred times if a few are much larger. The bound is 2 n times.

    References
        Karimireddy et al., Error feedback fixes SignSGD (arXiv:1901.09847), lemma 3 for the bound.

    Examples
        >>> c = Sign()
        >>> message = c.encode(np.array([1.0, -5.0, 3.0, -1.0]))
        >>> message.nbytes, c.decode(message)
        (5, array([ 2.5, -2.5,  2.5, -2.5]))
    """

    symbols = 2

    def squared_error(self, size: int | None = None) -> float | None:
        """1 - 1/n, the largest value of 1 - |x|_1^2 / (n |x|_2^2)."""
        return None if size is None else 1 - 1 / max(size, 1)

    def quantize(self, array: Array) -> tuple[Array, Array]:
        flat = array.reshape(-1)
        total = partial_sums(flat, flat.size, False).sum() if flat.size else 0.0
        return np.array([total / max(flat.size, 1)], np.float32), flat < 0

    def dequantize(self, scales: Array, symbols: Array, shape: tuple[int, ...]) -> Array:
        return two_values(symbols, np.array([scales, -scales]))
