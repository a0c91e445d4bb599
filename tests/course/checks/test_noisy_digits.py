"""The training problem of chapter 02 tells right loops from wrong ones, whatever order a right one shuffles into."""

from __future__ import annotations

import numpy as np
import pytest

from course.checks.minibatch_sgd import noisy_digits
from course.checks.minibatch_sgd.training_run import TrainingRun
from course.checks.minibatch_sgd.training_steps import BATCH_SIZE, COPIES, descended
from course.judging import Wrong
from minidl import functional as F

SEEDS = (5, 3, 8)
TARGET = 0.3
ONE_SAMPLE = 1 / noisy_digits.HELD_OUT


def errors(seed: int, orders: list[np.ndarray]) -> list[float]:
    """The validation errors before training and after each epoch of plain SGD in these orders."""
    (x, y), validation, _ = noisy_digits.samples(seed)
    weights = noisy_digits.start(seed)
    told = [noisy_digits.error(weights, validation)]
    for order in orders:
        for i in range(0, len(order), 5):
            batch = x[order[i : i + 5]], y[order[i : i + 5]]
            gradient = noisy_digits.mean_gradient(weights, batch)
            weights = [w - np.float32(0.4) * g for w, g in zip(weights, gradient, strict=True)]
        told.append(noisy_digits.error(weights, validation))
    return told


@pytest.mark.parametrize("seed", SEEDS)
def test_every_shuffle_meets_the_target_with_room_and_overfits_in_the_end(seed):
    for shuffle in range(4):
        rng = np.random.default_rng((99, shuffle))
        told = errors(seed, [rng.permutation(noisy_digits.TRAINING) for _ in range(15)])
        assert min(told) < TARGET - 0.08
        assert told[-1] > min(told) + 2 * ONE_SAMPLE


@pytest.mark.parametrize("seed", SEEDS)
def test_no_epoch_meets_the_target_when_the_samples_come_sorted(seed):
    told = errors(seed, [np.arange(noisy_digits.TRAINING)] * 15)
    assert min(told) > TARGET + 0.05


@pytest.mark.parametrize("seed", SEEDS)
def test_three_steps_on_one_digit_are_better_than_none(seed):
    (x, _), _, _ = noisy_digits.samples(seed)
    before = noisy_digits.start(seed)
    label = (noisy_digits.outputs(before, x[:1])[1].argmax(axis=1) + 1) % 10
    one = x[:1], label
    assert noisy_digits.error(before, one) == 1
    assert noisy_digits.error(descended(before, one, [1] * -(-COPIES // BATCH_SIZE)), one) == 0


def test_the_gradient_in_numpy_is_the_tapes():
    model, train_set, _, _ = noisy_digits.digits_with_noise(seed=1)
    x, y = train_set[np.arange(7)]
    F.cross_entropy(model(x), y).backward()
    mine = noisy_digits.mean_gradient(noisy_digits.start(1), (x, y))
    for parameter, gradient in zip(model.parameters(), mine, strict=True):
        np.testing.assert_allclose(parameter.grad, gradient, rtol=1e-4, atol=1e-6)


def test_the_validation_set_reports_the_error_that_numpy_computes():
    model, _, validation_set, _ = noisy_digits.digits_with_noise(seed=1)
    _, validation, _ = noisy_digits.samples(1)
    told = validation_set.error(model)
    assert told == noisy_digits.error(noisy_digits.start(1), validation)
    assert validation_set.errors == [told]


def test_the_samples_are_sorted_by_class_and_no_digit_is_in_two_sets():
    (x, y), (held_x, _), (test_x, _) = noisy_digits.samples(4)
    assert (np.diff(y) >= 0).all()
    assert len(np.unique(np.concatenate([x, held_x, test_x]), axis=0)) == len(x) + len(held_x) + len(test_x)


@pytest.mark.filterwarnings("error")
def test_nan_weights_are_judged_without_a_warning():
    weights = [array * np.float32(np.nan) for array in noisy_digits.start(0)]
    run = TrainingRun(0, noisy_digits.samples(0), 0.4, 15, 5, 0.9, weights, [weights] * 15, [weights])
    run.compare_choice()
    with pytest.raises(Wrong, match="at most 30%"):
        run.compare_learning(TARGET)
