"""LargeBatchLR: the rate of every step is the formula's."""

from itertools import product
from math import sqrt

import numpy as np
import pytest

from minidl import Tensor, optim
from minidl.optim import LargeBatchLR
from tests.together import naming


def sgd(*rates: float) -> optim.SGD:
    return optim.SGD([{"params": [Tensor([1.0], requires_grad=True)], "lr": rate} for rate in rates])


def trace(schedule: LargeBatchLR, steps: int) -> list[float]:
    rates = []
    for _ in range(steps):
        rates.append(schedule.optimizer.param_groups[0]["lr"])
        schedule.optimizer.step()
        schedule.step()
    return rates


def test_scaling_warm_up_and_drops_follow_the_formula():
    for warmup, (scaling, peak) in product(
        ["none", "constant", "gradual"], [("linear", 0.8), ("sqrt", 0.1 * sqrt(8)), ("fixed", 0.1)]
    ):
        with naming(scaling, warmup):
            schedule = LargeBatchLR(
                sgd(0.1), 10, 128, 16, scaling=scaling, warmup=warmup, warmup_epochs=2, milestones=[3, 4.5], gamma=0.1
            )
            warm = {
                "none": [peak] * 20,
                "constant": [0.1] * 20,
                "gradual": [0.1 + (peak - 0.1) * t / 20 for t in range(20)],
            }
            expected = warm[warmup] + [peak * 0.1 ** ((t >= 30) + (t >= 45)) for t in range(20, 60)]
            assert trace(schedule, 60) == pytest.approx(expected, rel=1e-12)


def test_the_rate_of_a_smaller_minibatch_is_smaller():
    assert trace(LargeBatchLR(sgd(0.1), 10, 8, 16), 3) == pytest.approx([0.05] * 3)


def test_gradual_warm_up_may_begin_at_zero():
    schedule = LargeBatchLR(sgd(0.1), 5, 64, 16, warmup_epochs=2, start_factor=0.0)
    assert trace(schedule, 12) == pytest.approx([0.4 * min(t / 10, 1) for t in range(12)])


def test_polynomial_decay_follows_the_formula_and_ends_at_zero():
    schedule = LargeBatchLR(sgd(0.1), 10, 32, 16, warmup_epochs=1, total_epochs=5, power=2.0)
    expected = [0.1 + 0.1 * t / 10 if t < 10 else 0.2 * max(1 - (t - 10) / 40, 0) ** 2 for t in range(55)]
    assert trace(schedule, 55) == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_every_group_is_scaled_from_its_own_rate():
    schedule = LargeBatchLR(sgd(0.1, 0.01), 1, 64, 16)
    assert schedule.get_last_lr() == pytest.approx([0.4, 0.04])


def lars(w: Tensor) -> optim.Optimizer:
    """Its ratio is 1 for vectors, here."""
    return optim.LARS([w], lr=0.1, momentum=0.9, exclude_1d=True)


def v_form(w: Tensor) -> optim.Optimizer:
    return optim.SGD([w], lr=0.1, momentum=0.9, momentum_form="v")


def test_with_momentum_correction_an_inner_rate_moves_as_an_outer_one():
    """Goyal's remark 2: an optimizer with the rate inside equals SGD's u-form through warm-up and drops.

    A correction counts for one update, also where the schedule does not follow every update.
    """
    irregular = (0, 0, 1, 0, 2, 0, 0, 1, 0, 0, 2, 0, 0)
    for make, correct, per_epoch, pattern in [
        (lars, True, 5, [1] * 30),
        (v_form, True, 5, [1] * 30),
        (v_form, False, 5, [1] * 30),
        (lars, True, 1, irregular),
        (v_form, True, 1, irregular),
    ]:
        with naming(make, correct, pattern):
            inner_w, outer_w = (Tensor(np.array([1.0, -1.0]), requires_grad=True) for _ in range(2))
            inner, outer = make(inner_w), optim.SGD([outer_w], lr=0.1, momentum=0.9)
            settings = {"batch_size": 128, "base_batch_size": 16, "warmup_epochs": 2, "milestones": [4]}
            schedules = [
                LargeBatchLR(inner, per_epoch, **settings, momentum_correction=correct),
                LargeBatchLR(outer, per_epoch, **settings),
            ]
            rng = np.random.default_rng(0)
            for schedule_steps in pattern:
                inner_w.grad = outer_w.grad = rng.normal(size=2)
                inner.step()
                outer.step()
                for schedule in schedules * schedule_steps:
                    schedule.step()
            gap = np.abs(inner_w.data - outer_w.data).max()
            assert gap < 1e-12 if correct else gap > 0.1


def test_a_correction_that_was_saved_before_its_update_counts_for_one_update_after_loading():
    for make in [lars, v_form]:
        with naming(make):
            weights = []
            for is_saved in (False, True):
                w = Tensor(np.array([1.0, -1.0]), requires_grad=True)
                optimizer = make(w)
                schedule = LargeBatchLR(optimizer, 1, 32, 16, milestones=[1], momentum_correction=True)
                for step in range(4):
                    w.grad = np.ones(2)
                    optimizer.step()
                    if step == 1:
                        schedule.step()
                        if is_saved:
                            saved = optimizer.state_dict(), schedule.state_dict()
                            optimizer = make(w)
                            schedule = LargeBatchLR(optimizer, 1, 32, 16, milestones=[1], momentum_correction=True)
                            optimizer.load_state_dict(saved[0])
                            schedule.load_state_dict(saved[1])
                weights.append(w.data)
            np.testing.assert_array_equal(weights[1], weights[0])


def test_with_momentum_correction_weights_stand_still_after_the_rate_has_decayed_to_zero():
    for make in [lars, v_form]:
        with naming(make):
            w = Tensor(np.array([1.0, -1.0]), requires_grad=True)
            optimizer = make(w)
            schedule = LargeBatchLR(optimizer, 5, 128, 16, total_epochs=2, momentum_correction=True)
            weights = []
            for _ in range(20):
                w.grad = np.ones(2)
                optimizer.step()
                schedule.step()
                weights.append(w.data.copy())
            np.testing.assert_array_equal(weights[10:], np.broadcast_to(weights[9], (10, 2)))


def test_bad_settings_are_named():
    for settings, message in [
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"scaling": "cubic"}, "scaling must be 'linear', 'sqrt' or 'fixed', got 'cubic'"),
        ({"warmup": "slow"}, "warmup must be 'none', 'constant' or 'gradual', got 'slow'"),
        ({"power": -1}, "power must be at least 0, got -1"),
        ({"warmup_epochs": -1}, "warmup_epochs must be at least 0, got -1"),
        (
            {"warmup_epochs": 5, "total_epochs": 5},
            "total_epochs must be above 5, got 5: it counts the warm-up's epochs",
        ),
        ({"milestones": [1], "total_epochs": 5}, "not both"),
        (
            {"warmup_epochs": 1, "total_epochs": 1.04},
            "total_epochs=1.04 leaves no step after the warm-up: it ends at step 10 of 10 per epoch, the warm-up at",
        ),
        ({"total_epochs": 0.01}, "total_epochs=0.01 leaves no step after the warm-up"),
    ]:
        with naming(message), pytest.raises(ValueError, match=message.replace("(", r"\(")):
            LargeBatchLR(sgd(0.1), 10, **{"batch_size": 32, "base_batch_size": 16, **settings})


def test_momentum_correction_is_refused_where_it_would_be_wrong():
    with pytest.raises(TypeError, match="which SGD is not: leave it out"):
        LargeBatchLR(sgd(0.1), 10, 32, 16, momentum_correction=True)
    w = Tensor(np.zeros(2), requires_grad=True)
    look_ahead = optim.SGD([w], lr=0.1, momentum=0.9, nesterov=True, momentum_form="v")
    with pytest.raises(TypeError, match="without nesterov"):
        LargeBatchLR(look_ahead, 10, 32, 16, momentum_correction=True)
