"""The reproduction of the quantizers: its check for a bias finds one of 2 %, and passes what is right."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.reproductions import quantizers
from benchmarks.reproductions.quantizers import ALLOWED, Moments, moments, rounding_variance
from benchmarks.reproductions.reproduction import Reproduction
from minidl.compress import QSGD, TernGrad
from minidl.kernels import Array

V = np.random.default_rng(5).normal(size=300)


class ScaledQSGD(QSGD):
    """Every decoded number is too large by 2 %."""

    def dequantize(self, scales: Array, symbols: Array, shape: tuple[int, ...]) -> Array:
        return 1.02 * super().dequantize(scales, symbols, shape)


class ShrunkQSGD(QSGD):
    """2 % of the levels above zero are sent as one level less."""

    def quantize(self, array: Array) -> tuple[Array, Array]:
        scales, symbols = super().quantize(array)
        level = symbols.astype(np.int64) - self.levels
        is_less = np.random.default_rng(0).random(level.size) < 0.02
        return scales, (self.levels + level - is_less * np.sign(level)).astype(np.uint64)


class ShiftedQSGD(QSGD):
    """2 % of the mean magnitude are added to every number."""

    def dequantize(self, scales: Array, symbols: Array, shape: tuple[int, ...]) -> Array:
        return super().dequantize(scales, symbols, shape) + 0.02 * np.abs(V).mean()


def of_norm(quantizer: type[QSGD], s: int, seed: int = 0) -> Moments:
    return moments(quantizer(s, V.size), V, rounding_variance(V, float(np.linalg.norm(V)), s), seed)


def test_a_bias_of_2_percent_fails_the_verdict_of_the_experiment_and_an_unbiased_quantizer_passes(
    tmp_path: Path,
) -> None:
    scale = float(np.abs(V).max())
    measured = {
        "2 % too large, s=4": (of_norm(ScaledQSGD, 4), False),
        "2 % too large, s=32": (of_norm(ScaledQSGD, 32), False),
        "2 % too small": (of_norm(ShrunkQSGD, 1), False),
        "2 % added": (of_norm(ShiftedQSGD, 1), False),
        "TernGrad": (moments(TernGrad(), V, rounding_variance(V, scale, 1)), True),
        **{f"seed {seed}, s={s}": (of_norm(QSGD, s, seed), True) for seed in range(2) for s in (1, 4, 32)},
    }
    for name, (one, holds) in measured.items():
        reproduction = Reproduction("quantizers", quantizers.TITLE, tmp_path, Console(file=io.StringIO()))
        quantizers.show_biases(reproduction, {"right": of_norm(QSGD, 32), name: one})
        assert [verdict for verdict, _ in reproduction.verdicts] == [holds], name
        assert holds == (one.sigmas < ALLOWED) == (one.sigmas < 1.2 * ALLOWED)
