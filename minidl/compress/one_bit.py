"""One bit per number: OneBit, with two means per column; Sign, with one scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minidl.compress.quantizer import Quantizer
from minidl.kernels import Array


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
        matrix = array.reshape(-1, columns(array.shape)) if array.size else array.reshape(0, columns(array.shape))
        negative = matrix < 0
        means = []
        for members in (~negative, negative):
            count = np.maximum(members.sum(axis=0), 1)
            means.append(np.where(members, matrix, 0).sum(axis=0, dtype=np.float64) / count)
        return np.concatenate(means).astype(np.float32), negative.reshape(-1)

    def dequantize(self, scales: Array, symbols: Array, shape: tuple[int, ...]) -> Array:
        means = scales.reshape(2, columns(shape))
        if not symbols.size:
            return np.empty(0, np.float32)
        return np.where(symbols.reshape(-1, columns(shape)), means[1], means[0]).reshape(-1)


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
        scale = np.abs(array).mean(dtype=np.float64) if array.size else 0.0
        return np.array([scale], np.float32), (array.reshape(-1) < 0).astype(np.uint8)

    def dequantize(self, scales: Array, symbols: Array, shape: tuple[int, ...]) -> Array:
        return np.where(symbols, -scales, scales)
