"""QSGD: unbiased random rounding to a few fractions of the norm."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from minidl.arguments import whole_number
from minidl.compress.quantizer import Quantizer, numbers_of_levels, partial_sums
from minidl.compress.random_choices import RandomChoices
from minidl.kernels import Array
from minidl.kernels.counterparts import compiled_in


@dataclass
class QSGD(RandomChoices, Quantizer):
    """Rounds |x| / norm at random to one of the fractions 0, 1/s, ..., 1, so that the expected value is x.

        for each bucket v of the array:
            r = s |v_i| / |v|_2
            level_i = floor(r) + 1 with probability r - floor(r), else floor(r)
            send |v|_2, and the levels with their signs
        decode to |v|_2 sign(v_i) level_i / s

    Parameters
        levels  s, at least 1; more levels take more bits and have a smaller error
        bucket  numbers that share a norm, default 512 (the last bucket may be smaller); None takes the whole array.
                A larger bucket sends fewer norms and has a larger error

    Message: one norm per bucket (float32), then ceil(log2(2s + 1)) bits per number.

    Notes
        Unbiased. The expected squared error of a bucket v of d numbers is at most min(d / (4 s^2), sqrt(d) / s) |v|^2,
        with the first bound attained where every number is half-way between two levels. On average at most
        s (s + sqrt(d)) numbers are not zero.
        With more than sqrt(d) / 2 levels the bound is below 1, so `ErrorFeedback` accepts it.
        A bucket that contains an infinity or NaN decodes to NaN.
        A number may be rounded up to a level far above it, in float16 to infinity if that level is above 65,504. More
        levels or a smaller bucket make the steps smaller.

    Raises
        ValueError  for levels or a bucket below 1, for integer arrays

    References
        Alistarh et al., QSGD (arXiv:1610.02132), Lemma 3.1. Its first bound is d / s^2; ours is four times smaller,
        since rounding to a grid of step 1/s has a variance of at most 1/(4 s^2).

    Examples
        >>> c = QSGD(levels=5, bucket=None)
        >>> message = c.encode(np.array([3.0, 0.0, -4.0, 0.0]))  # norm 5: every number is on a level
        >>> message.nbytes, c.decode(message)
        (6, array([ 3.,  0., -4.,  0.]))
    """

    levels: int
    bucket: int | None = 512

    def __post_init__(self) -> None:
        self.levels = whole_number("QSGD: levels", self.levels, at_least=1, at_most=2**31 - 1)
        if self.bucket is not None:
            self.bucket = whole_number("QSGD: bucket", self.bucket, at_least=1, hint="None takes the whole array")

    @property
    def symbols(self) -> int:
        return 2 * self.levels + 1

    def squared_error(self, size: int | None = None) -> float | None:
        """min(d / (4 s^2), sqrt(d) / s) for d numbers per bucket."""
        d = self._bucket_size(size)
        return None if d is None else min(d / (4 * self.levels**2), math.sqrt(d) / self.levels)

    def contraction(self, size: int | None = None) -> QSGD | None:
        """QSGD with ceil(sqrt(d)) levels, whose bound is at most 1/4."""
        d = self._bucket_size(size)
        return None if d is None else replace(self, levels=max(math.ceil(math.sqrt(d)), 1))

    def count_scales(self, shape: tuple[int, ...]) -> int:
        n = int(np.prod(shape))
        return -(-n // self._width(n))

    def quantize(self, array: Array) -> tuple[Array, Array]:
        flat = array.reshape(-1)
        if not flat.size:
            return np.empty(0, np.float32), np.empty(0, np.uint8)
        width = self._width(flat.size)
        norms = np.sqrt(partial_sums(flat, width, True).sum(axis=1)).astype(np.float32)
        safe = np.where((norms > 0) & np.isfinite(norms), norms, np.inf)  # else all levels of the bucket are 0
        steps = self.levels / safe.astype(np.float64)  # in float32 the inverse of a tiny norm would be infinite
        return norms, levels_at_random(flat, steps, width, self.levels, self.choices.random(flat.size))

    def dequantize(self, scales: Array, symbols: Array, shape: tuple[int, ...]) -> Array:
        return numbers_of_levels(symbols, scales, self._width(symbols.size), self.levels)

    def _bucket_size(self, size: int | None) -> int | None:
        return self.bucket if size is None else self._width(size)

    def _width(self, size: int) -> int:
        return max(size if self.bucket is None else min(self.bucket, size), 1)


@compiled_in("few_bits")
def levels_at_random(flat: Array, steps: Array, width: int, levels: int, chances: Array) -> Array:
    """Symbols `levels` + sign(x) level: |x| times the step of its bucket, rounded down after adding its chance."""
    flat = flat.astype(np.float64)
    ratio = np.abs(flat) * np.repeat(steps, width)[: flat.size]
    level = np.floor(np.nan_to_num(ratio) + chances)
    level = np.minimum(level, levels)  # rounding to float32 may make a norm smaller than its largest number
    return (levels + np.copysign(level, flat)).astype(np.uint8 if levels <= 127 else np.uint32)
