"""LargeBatchLR: the rate of every step is the formula's."""

from functools import partial
from math import sqrt

import numpy as np
import pytest

from minidl import Tensor, data, nn, optim, parallel
from minidl.optim import LargeBatchLR


def sgd(*rates: float) -> optim.SGD:
    return optim.SGD([{"params": [Tensor([1.0], requires_grad=True)], "lr": rate} for rate in rates])


def trace(schedule: LargeBatchLR, steps: int) -> list[float]:
    rates = []
    for _ in range(steps):
        rates.append(schedule.optimizer.param_groups[0]["lr"])
        schedule.optimizer.step()
        schedule.step()
    return rates


@pytest.mark.parametrize(("scaling", "peak"), [("linear", 0.8), ("sqrt", 0.1 * sqrt(8)), ("fixed", 0.1)])
@pytest.mark.parametrize("warmup", ["none", "constant", "gradual"])
def test_scaling_warm_up_and_drops_follow_the_formula(scaling, peak, warmup):
    schedule = LargeBatchLR(
        sgd(0.1), 10, 128, 16, scaling=scaling, warmup=warmup, warmup_epochs=2, milestones=[3, 4.5], gamma=0.1
    )
    warm = {"none": lambda t: peak, "constant": lambda t: 0.1, "gradual": lambda t: 0.1 + (peak - 0.1) * t / 20}
    expected = [warm[warmup](t) if t < 20 else peak * 0.1 ** ((t >= 30) + (t >= 45)) for t in range(60)]
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


def test_k_small_steps_are_one_large_step_where_the_gradient_is_constant():
    """The linear scaling rule is exact for a linear loss."""
    x, y = (Tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    small, large = optim.SGD([x], lr=0.1), optim.SGD([y], lr=0.1)
    LargeBatchLR(large, 1, batch_size=64, base_batch_size=16)
    slope = np.array([3.0, -1.0], np.float32)
    for _ in range(4):
        x.grad = slope
        small.step()
    y.grad = slope
    large.step()
    assert x.numpy() == pytest.approx(y.numpy(), abs=1e-6)


def test_on_a_quadratic_the_gap_between_k_small_steps_and_a_large_one_is_of_second_order_in_the_rate():
    """1 - (1 - lr)^k and k lr differ by lr^2 k (k - 1) / 2, to first order."""
    gaps = []
    for lr in (1e-3, 2e-3):
        x = Tensor(np.array([1.0]), requires_grad=True)
        small = optim.SGD([x], lr=lr)
        for _ in range(8):
            x.grad = x.data.copy()
            small.step()
        gaps.append(float(x.data[0]) - (1 - 8 * lr))
    assert gaps[0] == pytest.approx(1e-6 * 8 * 7 / 2, rel=0.01)
    assert gaps[1] / gaps[0] == pytest.approx(4, rel=0.01)


def lars(w: Tensor) -> optim.Optimizer:
    """Its ratio is 1 for vectors, here."""
    return optim.LARS([w], lr=0.1, momentum=0.9, exclude_1d=True)


def v_form(w: Tensor) -> optim.Optimizer:
    return optim.SGD([w], lr=0.1, momentum=0.9, momentum_form="v")


@pytest.mark.parametrize("make", [lars, v_form])
@pytest.mark.parametrize("correct", [True, False])
def test_with_momentum_correction_an_inner_rate_moves_as_an_outer_one(make, correct):
    """Goyal's remark 2: an optimizer with the rate inside equals SGD's u-form through warm-up and drops."""
    inner_w, outer_w = (Tensor(np.array([1.0, -1.0]), requires_grad=True) for _ in range(2))
    inner = make(inner_w)
    outer = optim.SGD([outer_w], lr=0.1, momentum=0.9)
    settings = {"batch_size": 128, "base_batch_size": 16, "warmup_epochs": 2, "milestones": [4]}
    schedules = [
        LargeBatchLR(inner, 5, **settings, momentum_correction=correct),
        LargeBatchLR(outer, 5, **settings),
    ]
    rng = np.random.default_rng(0)
    for _ in range(30):
        inner_w.grad = outer_w.grad = rng.normal(size=2)
        inner.step()
        outer.step()
        for schedule in schedules:
            schedule.step()
    gap = np.abs(inner_w.data - outer_w.data).max()
    assert gap < 1e-12 if correct else gap > 0.1


@pytest.mark.parametrize("make", [lars, v_form])
def test_momentum_correction_counts_for_one_update_where_the_schedule_does_not_follow_every_update(make):
    inner_w, outer_w = (Tensor(np.array([1.0, -1.0]), requires_grad=True) for _ in range(2))
    inner, outer = make(inner_w), optim.SGD([outer_w], lr=0.1, momentum=0.9)
    settings = {"batch_size": 32, "base_batch_size": 16, "warmup_epochs": 3, "milestones": [5]}
    schedules = [LargeBatchLR(inner, 1, **settings, momentum_correction=True), LargeBatchLR(outer, 1, **settings)]
    rng = np.random.default_rng(0)
    for schedule_steps in (0, 0, 1, 0, 2, 0, 0, 1, 0, 0, 2, 0, 0):
        inner_w.grad = outer_w.grad = rng.normal(size=2)
        inner.step()
        outer.step()
        for schedule in schedules:
            for _ in range(schedule_steps):
                schedule.step()
    np.testing.assert_allclose(inner_w.data, outer_w.data, rtol=0, atol=1e-12)


@pytest.mark.parametrize("make", [lars, v_form])
def test_a_correction_that_was_saved_before_its_update_counts_for_one_update_after_loading(make):
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


@pytest.mark.parametrize("make", [lars, v_form])
def test_with_momentum_correction_weights_stand_still_after_the_rate_has_decayed_to_zero(make):
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


def test_a_run_that_goes_on_from_a_checkpoint_has_the_rates_of_one_that_was_never_stopped(tmp_path):
    job = {
        "model": partial(nn.models.MLP, 2, 4, 3),
        "data": partial(data.spirals, n=60),
        "optimizer": partial(optim.LARS, lr=0.1),
        "schedule": partial(
            LargeBatchLR, batch_size=20, base_batch_size=10, warmup_epochs=2, milestones=[3], momentum_correction=True
        ),
        "batch_size": 20,
    }
    whole = parallel.train(parallel.Job(**job, epochs=4))
    parallel.train(parallel.Job(**job, epochs=1), folder=tmp_path)
    resumed = parallel.train(parallel.Job(**job, epochs=4), resume=tmp_path / "checkpoint.npz")
    assert resumed.digests == whole.digests
    assert [row["lr"] for row in resumed.history] == [row["lr"] for row in whole.history]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
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
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        LargeBatchLR(sgd(0.1), 10, **{"batch_size": 32, "base_batch_size": 16, **settings})


def test_momentum_correction_is_refused_where_it_would_be_wrong():
    with pytest.raises(TypeError, match="which SGD is not: leave it out"):
        LargeBatchLR(sgd(0.1), 10, 32, 16, momentum_correction=True)
    w = Tensor(np.zeros(2), requires_grad=True)
    look_ahead = optim.SGD([w], lr=0.1, momentum=0.9, nesterov=True, momentum_form="v")
    with pytest.raises(TypeError, match="without nesterov"):
        LargeBatchLR(look_ahead, 10, 32, 16, momentum_correction=True)
