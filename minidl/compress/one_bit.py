"""OneBit: one bit a number, and two reconstruction values a column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minidl.compress.quantizer import Quantizer
from minidl.kernels import Array


@dataclass
class OneBit(Quantizer):
    """Replaces every number by the mean of those of its sign in its column: the negative ones, or the others.

    A column is what one input feeds: a weight of shape (rows, ...) is read as a matrix of that many rows; a vector is
    one column. No other two values a column have a smaller squared error than these means.

    Message: two means a column (float32), then a bit a number: 8 columns + ceil(n / 8) bytes, 1 + 64 / rows bits a
    number. The fewer rows, the less it saves; a message of a single row is longer than the row.

    Notes
        Biased: made for `ErrorFeedback`. The squared error of a column is at most (1 - 1/rows) |x|^2.

    References
        Seide et al., 1-bit stochastic gradient descent (Interspeech 2014); Dryden et al., Communication quantization
        for data-parallel training of deep neural networks (MLHPC 2016).

    Examples
        >>> c = OneBit()
        >>> message = c.encode(np.array([1.0, -5.0, 3.0, -1.0]))
        >>> message.nbytes, c.decode(message)
        (9, array([ 2., -3.,  2., -3.]))
    """

    @property
    def symbols(self) -> int:
        return 2

    def squared_error(self, size: int | None = None) -> float | None:
        """1 - 1/rows, where rows <= n."""
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
    """The columns of an array that is read as a matrix with its first axis for rows; 1 of a vector or a number."""
    return int(np.prod(shape[1:]))
