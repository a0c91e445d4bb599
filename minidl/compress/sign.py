"""Sign: one bit a number, and one scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minidl.compress.quantizer import Quantizer
from minidl.kernels import Array


@dataclass
class Sign(Quantizer):
    """Sends the sign of every number, scaled by the mean of all magnitudes; zero counts as positive.

    Message: the mean (float32), then a bit a number: 4 + ceil(n / 8) bytes.

    Notes
        Biased: without `ErrorFeedback` there are convex functions that it does not minimise. The squared error is
        |x|_2^2 - |x|_1^2 / n, at most (1 - 1/n) |x|^2.

    References
        Karimireddy et al., Error feedback fixes SignSGD (arXiv:1901.09847).

    Examples
        >>> c = Sign()
        >>> message = c.encode(np.array([1.0, -5.0, 3.0, -1.0]))
        >>> message.nbytes, c.decode(message)
        (5, array([ 2.5, -2.5,  2.5, -2.5]))
    """

    @property
    def symbols(self) -> int:
        return 2

    def squared_error(self, size: int | None = None) -> float | None:
        """1 - |x|_1^2 / (n |x|_2^2), at most 1 - 1/n."""
        return None if size is None else 1 - 1 / max(size, 1)

    def quantize(self, array: Array) -> tuple[Array, Array]:
        scale = np.abs(array).mean(dtype=np.float64) if array.size else 0.0
        return np.array([scale], np.float32), (array.reshape(-1) < 0).astype(np.uint8)

    def dequantize(self, scales: Array, symbols: Array, shape: tuple[int, ...]) -> Array:
        return np.where(symbols, -scales, scales)
