"""TernGrad: minus one, zero or one, times the largest magnitude; right on average."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from minidl.compress.own_choices import OwnChoices
from minidl.compress.quantizer import Quantizer
from minidl.kernels import Array

TRITS = 5  # of which 3**5 = 243 combinations fit into a byte
WEIGHTS = 3 ** np.arange(TRITS, dtype=np.uint8)


@dataclass
class TernGrad(OwnChoices, Quantizer):
    """Sends s sign(x) with probability |x| / s, else 0, for every number; s is the largest magnitude of the array.

    Parameters
        clip  magnitudes above `clip` times the root mean square are cut to that first: a smaller s and so a smaller
              variance, at the price of a bias. None: no cut, unbiased. The paper cuts at standard deviations, which are
              the same where the mean is zero; but those of equal numbers, or of one number, are zero

    Message: s (float32), then five numbers a byte: 4 + ceil(n / 5) bytes, 1.6 bits a number, of which log2(3) = 1.585
    are needed.

    Notes
        Without clip the expected squared error is |x|_1 |x|_inf - |x|_2^2, at most (sqrt(n) - 1) / 2 |x|^2 for n
        numbers, and |x|_1 / |x|_inf numbers are not zero on average. The error may be larger than x, so `ErrorFeedback`
        refuses it; it needs none.
        An array with a number that is infinite or NaN decodes to NaN.

    Raises
        ValueError  for a clip that is not positive

    References
        Wen et al., TernGrad (arXiv:1705.07878).

    Examples
        >>> c = TernGrad()
        >>> message = c.encode(np.array([2.0, 0.0, -2.0, 2.0, 0.0, 0.0]))
        >>> message.nbytes, c.decode(message)
        (6, array([ 2.,  0., -2.,  2.,  0.,  0.]))
    """

    clip: float | None = None

    def __post_init__(self) -> None:
        if self.clip is not None and not self.clip > 0:
            raise ValueError(f"TernGrad: clip must be positive, or None not to clip, got {self.clip}")

    @property
    def symbols(self) -> int:
        return 3

    def squared_error(self, size: int | None = None) -> float:
        """(sqrt(n) - 1) / 2 of n numbers, attained where one of them is 1 + sqrt(n) times as large as the others."""
        return math.inf if size is None else max(math.sqrt(size) - 1, 0) / 2

    def quantize(self, array: Array) -> tuple[Array, Array]:
        flat = array.reshape(-1).astype(np.float64)
        if self.clip is not None and flat.size:
            bound = self.clip * np.sqrt(np.mean(flat * flat))
            flat = np.clip(flat, -bound, bound)
        scale = np.abs(flat).max(initial=0.0).astype(np.float32)
        safe = scale if 0 < scale < np.inf else np.inf
        chosen = self.choices.random(flat.size) < np.abs(flat) / safe
        return np.array([scale], np.float32), (1 + np.sign(np.where(chosen, flat, 0))).astype(np.uint8)

    def dequantize(self, scales: Array, symbols: Array, shape: tuple[int, ...]) -> Array:
        return scales * (symbols.astype(np.float32) - 1)

    def pack(self, symbols: Array) -> Array:
        whole = np.zeros((-(-symbols.size // TRITS), TRITS), np.uint8)
        whole.reshape(-1)[: symbols.size] = symbols
        return (whole * WEIGHTS).sum(axis=1, dtype=np.uint8)

    def packed_bytes(self, count: int) -> int:
        return -(-count // TRITS)

    def unpack(self, packed: Array, count: int) -> Array:
        return (packed[:, None] // WEIGHTS % 3).reshape(-1)[:count]
