"""The schedules against their closed forms, alone and composed."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import cos, pi

import numpy as np
import pytest

from minidl import Tensor, optim
from tests.together import naming


def optimizer_with(*rates: float) -> optim.SGD:
    return optim.SGD([{"params": [Tensor([0.0], requires_grad=True)], "lr": rate} for rate in rates])


def rates(optimizer: optim.SGD, schedules: list[optim.LRScheduler], epochs: int) -> list[float]:
    seen = []
    for _ in range(epochs):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        for schedule in schedules:
            schedule.step()
    return seen


CLOSED_FORMS: list[tuple[Callable[[optim.Optimizer], optim.LRScheduler], Callable[[int], float]]] = [
    (lambda o: optim.StepLR(o, step_size=3, gamma=0.5), lambda t: 0.5 ** (t // 3)),
    (lambda o: optim.MultiStepLR(o, [2, 7, 7], gamma=0.1), lambda t: 0.1 ** ((t >= 2) + 2 * (t >= 7))),
    (lambda o: optim.MultiStepLR(o, np.array([3, 9]), np.float32(0.75)), lambda t: 0.75 ** ((t >= 3) + (t >= 9))),
    (lambda o: optim.CosineAnnealingLR(o, T_max=np.int64(6)), lambda t: (1 + cos(pi * t / 6)) / 2),
    (lambda o: optim.CosineAnnealingLR(o, T_max=1, eta_min=0.2), lambda t: 1.0 if t % 2 == 0 else 0.2),
    (lambda o: optim.CosineAnnealingLR(o, 20, eta_min=0.2), lambda t: 0.2 + 0.8 * (1 + cos(pi * t / 20)) / 2),
    (lambda o: optim.LinearLR(o, start_factor=0.25, total_iters=4), lambda t: min(1.0, 0.25 + 0.75 * t / 4)),
    (lambda o: optim.LinearLR(o, start_factor=1.0, end_factor=0.0, total_iters=9), lambda t: max(0.0, 1 - t / 9)),
    (lambda o: optim.LambdaLR(o, lambda t: 1 / (1 + t)), lambda t: 1 / (1 + t)),
]


def test_the_rate_of_every_epoch_is_that_of_the_closed_form_also_after_a_state_saved_as_json():
    for number, (make, factor) in enumerate(CLOSED_FORMS):
        with naming(number):
            optimizer = optimizer_with(1.0)
            schedule = make(optimizer)
            expected = [factor(t) for t in range(30)]
            assert rates(optimizer, [schedule], 7) == pytest.approx(expected[:7], rel=1e-12, abs=1e-15)

            other = optimizer_with(1.0)
            resumed = make(other)
            other.load_state_dict(optimizer.state_dict())
            resumed.load_state_dict(json.loads(json.dumps(schedule.state_dict())))
            assert resumed.last_epoch == 7
            assert resumed.get_last_lr() == schedule.get_last_lr()
            for each, one in ((optimizer, schedule), (other, resumed)):
                assert rates(each, [one], 23) == pytest.approx(expected[7:], rel=1e-12, abs=1e-15)


def test_warm_up_and_drops_compose():
    optimizer = optimizer_with(1.0)
    schedules = [optim.LinearLR(optimizer, 0.1, total_iters=5), optim.StepLR(optimizer, 10)]
    expected = [min(1.0, 0.1 + 0.9 * t / 5) * 0.1 ** (t // 10) for t in range(25)]
    assert rates(optimizer, schedules, 25) == pytest.approx(expected, rel=1e-12)


def test_every_group_keeps_its_own_base_rate():
    optimizer = optimizer_with(1.0, 0.5)
    schedule = optim.StepLR(optimizer, 1, gamma=0.5)
    schedule.step()
    assert schedule.get_last_lr() == [0.5, 0.25]
    assert schedule.base_lrs == [1.0, 0.5]
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.25]


def test_a_group_that_is_added_later_is_scheduled_from_its_own_rate():
    for make in (
        lambda o: optim.StepLR(o, 2, 0.3),
        lambda o: optim.MultiStepLR(o, [2], 0.3),
        lambda o: optim.LargeBatchLR(o, 1, 32, 32, milestones=[2], gamma=0.3),
    ):
        optimizer = optimizer_with(0.7)
        schedule = make(optimizer)
        optimizer.add_param_group({"params": [Tensor([0.0], requires_grad=True)], "lr": 0.2})
        schedule.step()
        assert schedule.get_last_lr() == [0.7, 0.2]
        schedule.step()
        assert schedule.get_last_lr() == pytest.approx([0.21, 0.06])
        assert schedule.state_dict()["base_lrs"] == [0.7, 0.2]


def test_a_state_with_a_group_that_was_added_later_is_loaded_where_the_group_was_added_too():
    seen = []
    saved = None
    for _ in range(2):
        optimizer = optimizer_with(0.7)
        schedule = optim.StepLR(optimizer, 2, 0.3)
        optimizer.add_param_group({"params": [Tensor([0.0], requires_grad=True)], "lr": 0.2})
        if saved is None:
            schedule.step()
            saved = optimizer.state_dict(), json.loads(json.dumps(schedule.state_dict()))
        else:
            optimizer.load_state_dict(saved[0])
            schedule.load_state_dict(saved[1])
        schedule.step()
        seen.append(schedule.get_last_lr())
    assert seen == [pytest.approx([0.21, 0.06])] * 2


def test_every_group_may_have_a_function_of_its_own():
    optimizer = optimizer_with(1.0, 1.0)
    schedule = optim.LambdaLR(optimizer, [lambda t: 1.0, lambda t: 1 / (1 + t)])
    schedule.step()
    assert schedule.get_last_lr() == [1.0, 0.5]


def test_a_saved_state_does_not_change_with_the_schedule():
    optimizer = optimizer_with(1.0)
    schedule = optim.MultiStepLR(optimizer, [1, 2])
    saved = schedule.state_dict()
    schedule.milestones[5] += 1
    rates(optimizer, [schedule], 2)
    assert saved["last_epoch"] == 0
    assert saved["_last_lr"] == [1.0]
    assert 5 not in saved["milestones"]


def test_a_later_schedule_starts_from_the_initial_rates_of_the_first():
    optimizer = optimizer_with(1.0)
    first = optim.StepLR(optimizer, 1)
    rates(optimizer, [first], 2)
    assert optim.StepLR(optimizer, 5).base_lrs == [1.0]


TWO_GROUPS = optim.StepLR(optimizer_with(0.1, 0.2), 1).state_dict()


def load_changed(optimizer: optim.Optimizer, **entries: object) -> None:
    schedule = optim.MultiStepLR(optimizer, [2, 5])
    schedule.load_state_dict({**schedule.state_dict(), **entries})


def test_bad_input_is_named():
    for make, error, message in [
        (lambda o: optim.StepLR(o.param_groups, 1), TypeError, "needs an Optimizer, got list"),
        (lambda o: optim.StepLR(o, 0), ValueError, "step_size must be at least 1, got 0"),
        (
            lambda o: optim.StepLR(o, True),
            TypeError,
            "step_size must be a whole number of at least 1, got True of type",
        ),
        (lambda o: optim.StepLR(o, 1, gamma=-1), ValueError, "gamma must be at least 0"),
        (lambda o: optim.MultiStepLR(o, "30"), TypeError, "a milestone must be a number, got '3' of type str"),
        (lambda o: optim.CosineAnnealingLR(o, 0), ValueError, "T_max must be at least 1"),
        (lambda o: optim.LinearLR(o, start_factor=0.0), ValueError, "start_factor must be above 0"),
        (lambda o: optim.LinearLR(o, end_factor=2.0), ValueError, "end_factor must be from 0 to 1"),
        (lambda o: optim.LinearLR(o, total_iters=0), ValueError, "total_iters must be at least 1"),
        (lambda o: optim.LambdaLR(o, [lambda t: 1.0] * 2), ValueError, "1 parameter groups, but 2 functions"),
        (lambda o: optim.LambdaLR(o, lambda t: None), TypeError, "returns a number, .* for epoch 0 it returned None"),
        (lambda o: optim.StepLR(o, 1, last_epoch=3), ValueError, "no 'initial_lr'"),
        (lambda o: optim.StepLR(o, 1).load_state_dict({"last_epoch": 1}), ValueError, "not that of a StepLR"),
        (lambda o: load_changed(o, base_lrs=None), ValueError, r"base_lrs in the state is None: .* is \[0\.1\]"),
        (lambda o: load_changed(o, base_lrs=["a"]), ValueError, "base_lrs in the state is"),
        (lambda o: load_changed(o, last_epoch="3"), ValueError, "last_epoch in the state is '3'"),
        (lambda o: load_changed(o, milestones=[2, 5]), ValueError, r"milestones in the state is \[2, 5\]"),
        (lambda o: load_changed(o, milestones={"a": 1}), ValueError, "milestones in the state is"),
        (lambda o: load_changed(o, gamma=None), ValueError, "gamma in the state is None"),
        (lambda o: optim.StepLR(o, 1).load_state_dict(None), TypeError, "a dict, .* not a NoneType"),
        (
            lambda o: optim.StepLR(o, 1).load_state_dict(TWO_GROUPS),
            ValueError,
            "for 2 parameter groups, the optimizer has 1",
        ),
    ]:
        with naming(message), pytest.raises(error, match=message):
            make(optimizer_with(0.1))
