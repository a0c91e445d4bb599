"""TernGrad: unbiased rounding to -1, 0 or 1 times the largest magnitude."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from minidl.arguments import real_number
from minidl.compress.qsgd import levels_at_random
from minidl.compress.quantizer import Quantizer, numbers_of_levels, partial_sums
from minidl.compress.random_choices import RandomChoices
from minidl.kernels import Array
from minidl.kernels.counterparts import compiled_in

TRITS = 5  # per byte: 3**5 = 243 combinations
WEIGHTS = 3 ** np.arange(TRITS, dtype=np.uint8)


@compiled_in("few_bits")
def pack_trits(symbols: Array) -> Array:
    """Write five symbols in each byte, as digits in base 3, the lowest first."""
    whole = np.zeros((-(-symbols.size // TRITS), TRITS), np.uint8)
    whole.reshape(-1)[: symbols.size] = symbols
    return (whole * WEIGHTS).sum(axis=1, dtype=np.uint8)


@compiled_in("few_bits")
def unpack_trits(packed: Array, count: int) -> Array:
    """Read the first `count` symbols that `pack_trits` wrote."""
    return (packed[:, None] // WEIGHTS % 3).reshape(-1)[:count]


@dataclass
class TernGrad(RandomChoices, Quantizer):
    """Sends s sign(x) with probability |x| / s and 0 otherwise; s is the largest magnitude in the array.

    Parameters
        clip  magnitudes above `clip` times the root mean square are first cut to it, which makes s and the variance
              smaller but adds a bias; None (default): unbiased. The paper cuts at multiples of the standard deviation,
              which is the same where the mean is zero, but is zero where all numbers are equal

    Message: s (float32), then five numbers per byte: 4 + ceil(n / 5) bytes, 1.6 bits per number (log2(3) = 1.585).

    Notes
        Without clip, the expected squared error is |x|_1 |x|_inf - |x|_2^2, at most (sqrt(n) - 1) / 2 |x|^2, and on
        average |x|_1 / |x|_inf of the n numbers are not zero.
        The error may be larger than x, so `ErrorFeedback` refuses it. It needs none, since it is unbiased.
        An array that contains an infinity or NaN decodes to NaN.

    Raises
        ValueError  for a clip that is not positive, for integer arrays

    References
        Wen et al., TernGrad (arXiv:1705.07878), section 3.

    Examples
        >>> c = TernGrad()
        >>> message = c.encode(np.array([2.0, 0.0, -2.0, 2.0, 0.0, 0.0]))
        >>> message.nbytes, c.decode(message)
        (6, array([ 2.,  0., -2.,  2.,  0.,  0.]))
    """

    symbols = 3
    pack, unpack = staticmethod(pack_trits), staticmethod(unpack_trits)
    clip: float | None = None

    def __post_init__(self) -> None:
        if self.clip is not None:
            real_number("TernGrad: clip", self.clip, above=0, at_most=math.inf, hint="None switches clipping off")

    def squared_error(self, size: int | None = None) -> float:
        """(sqrt(n) - 1) / 2 for n numbers; attained if one of them is 1 + sqrt(n) times as large as the others."""
        return math.inf if size is None else max(math.sqrt(size) - 1, 0) / 2

    def quantize(self, array: Array) -> tuple[Array, Array]:
        flat, bound = array.reshape(-1), np.float64(np.inf)
        if self.clip is not None and flat.size:
            bound = self.clip * np.sqrt(partial_sums(flat, flat.size, True).sum() / flat.size)
        largest = np.abs([flat.max(initial=0), flat.min(initial=0)]).max()
        scale = np.minimum(largest, bound).astype(np.float32)
        step = 1 / np.float64(scale if 0 < scale < np.inf else np.inf)  # infinity: 0 is sent for all
        return np.array([scale]), levels_at_random(flat, np.array([step]), flat.size, 1, self.choices.random(flat.size))

    def dequantize(self, scales: Array, symbols: Array, shape: tuple[int, ...]) -> Array:
        return numbers_of_levels(symbols, scales, max(symbols.size, 1), 1)

    def packed_bytes(self, count: int) -> int:
        return -(-count // TRITS)
