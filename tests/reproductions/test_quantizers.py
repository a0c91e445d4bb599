"""The reproduction of the quantizers: its check for a bias finds one of 2 %, and passes what is right."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks.reproductions import quantizers
from benchmarks.reproductions.quantizers import ALLOWED, Moments, N, moments, rounding_variance
from benchmarks.reproductions.reproduction import Reproduction
from minidl.compress import QSGD, Quantizer, TernGrad
from minidl.kernels import Array

V = np.random.default_rng(5).normal(size=N)


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


class ScaledTernGrad(TernGrad):
    """Every decoded number is too large by 2 %."""

    def dequantize(self, scales: Array, symbols: Array, shape: tuple[int, ...]) -> Array:
        return 1.02 * super().dequantize(scales, symbols, shape)


def of_norm(quantizer: type[QSGD], s: int, seed: int = 0) -> Moments:
    return moments(quantizer(s, N), V, rounding_variance(V, float(np.linalg.norm(V)), s), seed)


def of_largest(quantizer: Quantizer, seed: int = 0) -> Moments:
    return moments(quantizer, V, rounding_variance(V, float(np.abs(V).max()), 1), seed)


RIGHT: dict[str, Callable[[int], Moments]] = {
    "QSGD, s=1": lambda seed: of_norm(QSGD, 1, seed),
    "QSGD, s=4": lambda seed: of_norm(QSGD, 4, seed),
    "QSGD, s=32": lambda seed: of_norm(QSGD, 32, seed),
    "TernGrad": lambda seed: of_largest(TernGrad(), seed),
}
BIASED: dict[str, Callable[[int], Moments]] = {
    "2 % too large, s=1": lambda seed: of_norm(ScaledQSGD, 1, seed),
    "2 % too large, s=4": lambda seed: of_norm(ScaledQSGD, 4, seed),
    "2 % too large, s=32": lambda seed: of_norm(ScaledQSGD, 32, seed),
    "2 % too small": lambda seed: of_norm(ShrunkQSGD, 1, seed),
    "2 % added": lambda seed: of_norm(ShiftedQSGD, 1, seed),
    "TernGrad, 2 % too large": lambda seed: of_largest(ScaledTernGrad(), seed),
}


@pytest.mark.parametrize("measure", BIASED.values(), ids=BIASED)
def test_a_bias_of_2_percent_exceeds_what_is_allowed(measure: Callable[[int], Moments]) -> None:
    assert measure(0).sigmas > 1.2 * ALLOWED


@pytest.mark.parametrize("measure", RIGHT.values(), ids=RIGHT)
def test_an_unbiased_quantizer_stays_within_what_is_allowed(measure: Callable[[int], Moments]) -> None:
    assert [seed for seed in range(2) if measure(seed).sigmas >= ALLOWED] == []


def test_a_bias_of_2_percent_fails_the_verdict_of_the_experiment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(quantizers, "QSGD", ScaledQSGD)
    reproduction = Reproduction("quantizers", quantizers.TITLE, tmp_path, Console(file=io.StringIO()))
    quantizers.show_moments(reproduction, V)
    assert [holds for holds, sentence in reproduction.verdicts if "the means are right" in sentence] == [False]
