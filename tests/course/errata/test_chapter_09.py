"""The errata of chapter 09 in course/errata.md: what is printed goes wrong, what is right does not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from minidl import compress, nn
from minidl.compress import DGC, ErrorFeedback, Threshold, TopK

Vector = NDArray[np.floating]


@dataclass
class WithoutMagnitude(Threshold):
    """The misprint: sends entries above tau, not those of magnitude above tau."""

    def choose(self, flat: Vector) -> Vector:
        return np.flatnonzero(flat > self.tau)


def gradients(steps: int, size: int = 1000) -> list[Vector]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(size).astype(np.float32) for _ in range(steps)]


def sent_by(compressor: compress.Compressor, given: list[Vector]) -> list[Vector]:
    return [compressor.decode(compressor.encode(gradient)) for gradient in given]


def test_a_threshold_without_magnitude_sends_nothing_negative_and_its_residual_drifts() -> None:
    given = gradients(200)
    wrong, right = ErrorFeedback(WithoutMagnitude(1.0)), ErrorFeedback(Threshold(1.0))
    assert min(sent.min() for sent in sent_by(wrong, given)) == 0
    assert min(sent.min() for sent in sent_by(right, given)) < -1
    assert wrong.residual is not None
    assert right.residual is not None
    assert wrong.residual.mean() < -5
    assert np.abs(right.residual).max() <= 1


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_the_gradients_of_all_nodes_in_each_residual_are_sent_once_by_each_node(nodes: int) -> None:
    rng = np.random.default_rng(0)
    rounds = [1 + rng.standard_normal((nodes, 50)) for _ in range(40)]
    shares = {}
    for name in ("own", "all"):
        keepers = [ErrorFeedback(TopK(0.1)) for _ in range(nodes)]
        total = np.zeros(50)
        for each in rounds:
            for keeper, own in zip(keepers, each, strict=True):
                total += keeper.decode(keeper.encode(own if name == "own" else each.sum(axis=0)))
        residuals = [keeper.residual for keeper in keepers if keeper.residual is not None]
        shares[name] = (total + np.sum(residuals, axis=0)) / np.sum(rounds, axis=(0, 1))
    np.testing.assert_allclose(shares["own"], 1)
    np.testing.assert_allclose(shares["all"], nodes)


def test_a_late_gradient_counts_at_the_rate_of_its_sending_unless_the_residual_holds_rate_times_gradient() -> None:
    rates = [0.1] * 5 + [0.01] * 5
    moved = {}
    for name in ("g", "rate g"):
        keeper, total = ErrorFeedback(TopK(0.5)), 0.0
        for step, rate in enumerate(rates):
            factor = rate if name == "rate g" else 1.0
            entries = np.array([1e6 if step < 9 else 0.0, 1.0]) * factor
            sent = keeper.decode(keeper.encode(entries))[1]
            total += sent if name == "rate g" else rate * sent
        moved[name] = total
    assert moved["g"] == pytest.approx(10 * 0.01)
    assert moved["rate g"] == pytest.approx(sum(rates))


def test_sent_and_kept_are_what_was_given_to_the_bit_in_a_step_and_to_rounding_over_many() -> None:
    keeper, before = ErrorFeedback(TopK(0.01)), np.zeros(1000, np.float32)
    given, sent = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
    for gradient in gradients(50):
        message = keeper.decode(keeper.encode(gradient))
        assert keeper.residual is not None
        assert np.array_equal(message + keeper.residual, gradient + before)
        given, sent, before = given + gradient, sent + message, keeper.residual
    assert 0.1 < (given != sent + before).mean() < 0.6
    np.testing.assert_allclose(sent + before, given, atol=1e-4)


def moved(compressor: DGC, momentum: float, steps: int, waits: int = 10) -> tuple[float, float]:
    """How far an entry has moved after 10 gradients of 1, and after `steps` in all with gradient 0; sent every 10th."""
    velocity, total, after_10 = 0.0, 0.0, 0.0
    for step in range(steps):
        huge = 0.0 if step % waits == waits - 1 else 1e9  # the larger one of two entries is sent
        sent = compressor.decode(compressor.encode(np.array([huge, 1.0 if step < 10 else 0.0])))
        velocity = momentum * velocity + float(sent[1])
        total += velocity
        after_10 = total if step == 9 else after_10
    return after_10, total


def test_late_momentum_is_late_and_not_lost_and_masking_forgets() -> None:
    formula = 10 / 0.1 - 0.9 * (1 - 0.9**10) / 0.1**2
    assert formula == pytest.approx(41.381, abs=5e-4)
    late = moved(DGC(0.5, warmup=(), momentum_correction=False), 0.9, 300)
    masked = moved(DGC(0.5, 0.9, warmup=()), 0.0, 300)
    assert late == pytest.approx((10, 100))
    assert masked == pytest.approx((formula, formula))


def test_without_clearing_the_velocity_momentum_correction_conserves_all_and_agrees_with_dense() -> None:
    """One entry: with two, the velocity of the huge one would never fade."""
    velocity, total = 0.0, 0.0
    corrected = DGC(1.0, 0.9, warmup=(), masking=False)
    for step in range(300):
        gradient = 1.0 if step < 10 else 0.0
        velocity = 0.9 * velocity + gradient
        total += float(corrected.decode(corrected.encode(np.array([gradient])))[0])
        assert corrected.velocity is not None
        assert corrected.velocity[0] == pytest.approx(velocity)
    assert total == pytest.approx(100)


def test_the_megabytes_of_the_table_are_mebibytes_and_all_ratios_are_below_the_bound() -> None:
    nbytes = 4 * sum(parameter.size for parameter in nn.models.ResNet(50).parameters())
    assert f"{nbytes / 2**20:.2f}" == "97.49"
    assert f"{nbytes / 1e6:.2f}" == "102.23"
    assert max(597, 277, 462, 608) < 32 / (48 * 0.001) == pytest.approx(666.7, abs=0.05)
