"""QSGD: random rounding to a few levels of the norm, right on average."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from minidl.compress.own_choices import OwnChoices
from minidl.compress.quantizer import Quantizer
from minidl.kernels import Array


@dataclass
class QSGD(OwnChoices, Quantizer):
    """Rounds |x| / norm to one of the fractions 0, 1/s, ..., 1, up or down at random so that the mean is right.

        for each bucket v of the array:
            r = s |v_i| / |v|_2
            level_i = floor(r) + 1 with probability r - floor(r), else floor(r)
            send |v|_2 and the levels with their signs: they stand for |v|_2 sign(v_i) level_i / s

    Parameters
        levels  s, at least 1; more levels take more bits and have a smaller error
        bucket  how many numbers share a norm (the last ones may be fewer), 512 by default; None for the whole array.
                A larger bucket sends fewer norms and has a larger error

    Message: a norm a bucket (float32), then ceil(log2(2s + 1)) bits a number.

    Notes
        Unbiased. The expected squared error of a bucket of d numbers is at most min(d / (4 s^2), sqrt(d) / s) times its
        squared norm; the first is attained where every number is half-way between two levels. On average at most
        s (s + sqrt(d)) numbers are not zero.
        With more than sqrt(d) / 2 levels the bound is below 1, so that `ErrorFeedback` accepts it.
        A bucket with a number that is infinite or NaN decodes to NaN.

    Raises
        ValueError  for levels or a bucket below 1

    References
        Alistarh et al., QSGD (arXiv:1610.02132), Lemma 3.1, which has d / s^2 for the first bound: four times as much,
        because rounding to a grid of step 1/s has a variance of at most 1/(4 s^2).

    Examples
        >>> c = QSGD(levels=5, bucket=None)
        >>> message = c.encode(np.array([3.0, 0.0, -4.0, 0.0]))  # of norm 5: nothing to round
        >>> message.nbytes, c.decode(message)
        (6, array([ 3.,  0., -4.,  0.]))
    """

    levels: int
    bucket: int | None = 512

    def __post_init__(self) -> None:
        if not (isinstance(self.levels, (int, np.integer)) and 1 <= self.levels < 2**31):
            raise ValueError(f"QSGD: levels must be a whole number from 1 to 2**31 - 1, got {self.levels!r}")
        if not (self.bucket is None or (isinstance(self.bucket, (int, np.integer)) and self.bucket >= 1)):
            raise ValueError(f"QSGD: bucket must be a whole number from 1, or None for all, got {self.bucket!r}")
        self.levels = int(self.levels)  # numpy's whole numbers would overflow below
        self.bucket = None if self.bucket is None else int(self.bucket)

    @property
    def symbols(self) -> int:
        return 2 * self.levels + 1

    def squared_error(self, size: int | None = None) -> float | None:
        """min(d / (4 s^2), sqrt(d) / s) for d numbers a bucket; without a bucket, d is the size of the array."""
        d = self._numbers_a_bucket(size)
        return None if d is None else min(d / (4 * self.levels**2), math.sqrt(d) / self.levels)

    def contraction(self, size: int | None = None) -> QSGD | None:
        """With ceil(sqrt(d)) levels, of which the bound is 1/4 or less."""
        d = self._numbers_a_bucket(size)
        return None if d is None else replace(self, levels=max(math.ceil(math.sqrt(d)), 1))

    def count_scales(self, shape: tuple[int, ...]) -> int:
        n = int(np.prod(shape))
        return -(-n // self._width(n))

    def quantize(self, array: Array) -> tuple[Array, Array]:
        flat = array.reshape(-1).astype(np.float64)
        if not flat.size:
            return np.empty(0, np.float32), np.empty(0, np.uint64)
        width = self._width(flat.size)
        norms = np.sqrt(np.add.reduceat(flat * flat, np.arange(0, flat.size, width))).astype(np.float32)
        safe = np.where((norms > 0) & np.isfinite(norms), norms, np.inf)  # all levels of such a bucket are 0
        steps = self.levels / safe.astype(np.float64)  # in float32, the inverse of a tiny norm would be infinite
        ratio = np.abs(flat) * np.repeat(steps, width)[: flat.size]
        level = np.floor(np.nan_to_num(ratio) + self.choices.random(flat.size))
        level = np.minimum(level, self.levels)  # where a norm in float32 is below the only number of its bucket
        return norms, (self.levels + np.copysign(level, flat)).astype(np.uint64)

    def dequantize(self, scales: Array, symbols: Array, shape: tuple[int, ...]) -> Array:
        signed = symbols.astype(np.float64) - self.levels
        return np.repeat(scales, self._width(signed.size))[: signed.size] * (signed / self.levels)

    def _numbers_a_bucket(self, size: int | None) -> int | None:
        return self.bucket if size is None else self._width(size)

    def _width(self, size: int) -> int:
        return max(size if self.bucket is None else min(self.bucket, size), 1)
