"""Fifty steps of every optimizer, with every option, end where PyTorch's end; and runs can change sides midway."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from minidl import Tensor, optim
from tests.together import naming

torch = pytest.importorskip("torch", reason="parity tests need the extra `parity`")

SHAPES = [(7, 5), (5,), (3, 2, 3, 3), ()]
STEPS = 50
TOLERANCE = {"float64": 1e-12, "float32": 1e-6}  # relative to the largest weight

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {}),
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.05}),
    ("SGD", {"lr": 0.02, "momentum": 0.9}),
    ("SGD", {"lr": 0.02, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.02, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.05}),
    ("SGD", {"lr": 0.02, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.02, "momentum": 0.9, "nesterov": True, "weight_decay": 0.05}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.05, "initial_accumulator_value": 0.5, "eps": 0.1}),
    ("RMSprop", {}),
    ("RMSprop", {"alpha": 0.9, "eps": 0.1, "weight_decay": 0.05}),
    ("RMSprop", {"momentum": 0.9}),
    ("RMSprop", {"centered": True, "eps": 0.1}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.05, "eps": 0.1}),
    ("Adam", {}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.9), "eps": 0.1, "weight_decay": 0.05}),
    ("Adam", {"lr": 0.05, "betas": (0.3, 0.6)}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.05, "betas": (0.8, 0.9), "eps": 0.1, "weight_decay": 0.2}),
]


class Pair:
    """The same weights here and in PyTorch, and the same gradients for both: those of a quadratic bowl, with noise."""

    def __init__(self, dtype: str, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        values = [self.random.normal(size=shape).astype(dtype) for shape in SHAPES]
        self.here = [Tensor(value.copy(), requires_grad=True) for value in values]
        self.there = [torch.tensor(value, requires_grad=True) for value in values]

    def make(self, name: str, options: dict[str, Any]) -> tuple[optim.Optimizer, Any]:
        return getattr(optim, name)(self.here, **options), getattr(torch.optim, name)(self.there, **options)

    def give_gradients(self) -> None:
        for ours, theirs in zip(self.here, self.there, strict=True):
            gradient = theirs.detach().numpy() + self.random.normal(size=ours.shape).astype(ours.dtype)
            gradient = np.asarray(gradient, dtype=ours.dtype)
            ours.grad, theirs.grad = gradient, torch.tensor(gradient)

    def step(self, ours: optim.Optimizer, theirs: Any, count: int = 1) -> None:
        for _ in range(count):
            self.give_gradients()
            ours.step()
            theirs.step()

    def assert_equal(self, factor: float = 1.0) -> None:
        for ours, theirs in zip(self.here, self.there, strict=True):
            expected = theirs.detach().numpy()
            scale = max(1.0, float(np.abs(expected).max()))
            assert ours.dtype == expected.dtype
            np.testing.assert_allclose(ours.data, expected, rtol=0, atol=factor * TOLERANCE[str(ours.dtype)] * scale)


def test_fifty_steps_end_where_pytorchs_end():
    for (name, options), dtype in product(CASES, ["float64", "float32"]):
        with naming(name, options, dtype):
            pair = Pair(dtype)
            ours, theirs = pair.make(name, options)
            pair.step(ours, theirs, STEPS)
            # Centered RMSprop with momentum: PyTorch's own float32 run is 1.0e-6 away from its float64 run.
            pair.assert_equal(
                factor=2 if dtype == "float32" and options.get("centered") and options.get("momentum") else 1
            )


def test_parameters_that_are_not_contiguous_are_updated_in_place():
    layouts = (np.asfortranarray, lambda a: np.repeat(a, 2, axis=-1)[..., ::2])
    for (name, options), layout in product([CASES[6], CASES[10], CASES[15], CASES[20]], layouts):
        with naming(name, options):
            pair = Pair("float64")
            for tensor in pair.here:
                if tensor.ndim > 1:
                    tensor.data = layout(tensor.data)
                    assert not tensor.data.flags.c_contiguous
            memory = [tensor.data for tensor in pair.here]
            ours, theirs = pair.make(name, options)
            pair.step(ours, theirs, 10)
            pair.assert_equal()
            assert all(tensor.data is array for tensor, array in zip(pair.here, memory, strict=True))


def test_parameters_without_a_gradient_are_passed_over_and_start_late():
    pair = Pair("float64")
    ours, theirs = pair.make("Adam", {"lr": 0.05, "weight_decay": 0.1})
    for step in range(10):
        pair.give_gradients()
        if step < 5:
            pair.here[1].grad = pair.there[1].grad = None
        ours.step()
        theirs.step()
    pair.assert_equal()


def test_a_momentum_switched_on_midway_starts_as_pytorchs():
    pair = Pair("float64")
    ours, theirs = pair.make("SGD", {"lr": 0.05, "dampening": 0.5})
    for step in range(10):
        if step == 5:
            ours.param_groups[0]["momentum"] = theirs.param_groups[0]["momentum"] = 0.9
        pair.step(ours, theirs)
    pair.assert_equal()


SCHEDULES: list[list[tuple[str, dict[str, Any]]]] = [
    [("StepLR", {"step_size": 7, "gamma": 0.5})],
    [("MultiStepLR", {"milestones": [30, 5, 12, 12], "gamma": 0.3})],
    [("CosineAnnealingLR", {"T_max": 50})],
    [("CosineAnnealingLR", {"T_max": 12, "eta_min": 0.001})],  # through the minimum, up, and down again
    [("LinearLR", {"start_factor": 0.1, "total_iters": 10})],
    [("LinearLR", {"start_factor": 1.0, "end_factor": 0.0, "total_iters": 40})],
    [("LambdaLR", {"lr_lambda": lambda epoch: 0.9**epoch})],
    [("LinearLR", {"start_factor": 0.1, "total_iters": 5}), ("StepLR", {"step_size": 10})],
    [
        ("LinearLR", {"total_iters": 5}),
        ("CosineAnnealingLR", {"T_max": 20, "eta_min": 0.001}),
        ("StepLR", {"step_size": 9}),
    ],
]


def test_schedules_set_pytorchs_rates():
    for schedules in SCHEDULES:
        pair = Pair("float64")
        groups = [{"params": pair.here[:1], "lr": 0.05}, {"params": pair.here[1:]}]
        ours = optim.SGD(groups, lr=0.1, momentum=0.9)
        theirs = torch.optim.SGD(
            [{"params": pair.there[:1], "lr": 0.05}, {"params": pair.there[1:]}], lr=0.1, momentum=0.9
        )
        here = [getattr(optim, name)(ours, **options) for name, options in schedules]
        there = [getattr(torch.optim.lr_scheduler, name)(theirs, **options) for name, options in schedules]
        for epoch in range(1, STEPS + 1):
            pair.step(ours, theirs)
            for mine, other in zip(here, there, strict=True):
                mine.step()
                other.step()
                np.testing.assert_allclose(mine.get_last_lr(), other.get_last_lr(), rtol=1e-12, atol=1e-17)
                assert mine.last_epoch == other.last_epoch == epoch
        pair.assert_equal()


def test_a_schedule_made_with_last_epoch_goes_on_as_pytorchs():
    for name, options in [schedule[0] for schedule in SCHEDULES[:7]]:
        with naming(name):
            pair = Pair("float64")
            ours, theirs = pair.make("SGD", {"lr": 0.05})
            for optimizer in ours, theirs:
                optimizer.param_groups[0]["initial_lr"] = 0.1
            theirs._opt_called = True  # PyTorch warns where a schedule steps before its optimizer did
            mine = getattr(optim, name)(ours, **options, last_epoch=4)
            other = getattr(torch.optim.lr_scheduler, name)(theirs, **options, last_epoch=4)
            for _ in range(10):
                np.testing.assert_allclose(mine.get_last_lr(), other.get_last_lr(), rtol=1e-12)
                ours.step()
                theirs.step()
                mine.step()
                other.step()


STATEFUL = [case for case in CASES if case[0] != "SGD" or case[1].get("momentum")]


def test_a_run_begun_on_one_side_is_continued_on_the_other():
    for (name, options), from_here in product(STATEFUL, [False, True]):
        with naming(name, options, from_here):
            pair = Pair("float64")
            ours, theirs = pair.make(name, options)
            for _ in range(10):
                pair.give_gradients()
                (ours if from_here else theirs).step()
            for mine, other in zip(pair.here, pair.there, strict=True):
                if from_here:
                    other.data.copy_(torch.tensor(mine.data))
                else:
                    mine.copy_(other.detach().numpy())
            if from_here:  # the options come with the state
                saved, theirs = as_tensors(ours.state_dict()), getattr(torch.optim, name)(pair.there, lr=0.5)
                theirs.load_state_dict(saved)
            else:
                saved, ours = as_arrays(theirs.state_dict()), getattr(optim, name)(pair.here, lr=0.5)
                ours.load_state_dict(saved)
            pair.step(ours, theirs, 10)
            pair.assert_equal()


def test_a_schedule_begun_in_pytorch_is_continued_here():
    pair = Pair("float64")
    ours, theirs = pair.make("SGD", {"lr": 0.1})
    other = torch.optim.lr_scheduler.MultiStepLR(theirs, [3, 8])
    mine = optim.MultiStepLR(ours, [1])
    for _ in range(5):
        theirs.step()
        other.step()
    ours.load_state_dict(as_arrays(theirs.state_dict()))
    mine.load_state_dict(other.state_dict())
    for _ in range(5):
        theirs.step()
        other.step()
        mine.step()
        assert mine.get_last_lr() == pytest.approx(other.get_last_lr(), rel=1e-15)


def as_arrays(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_arrays(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_arrays(item) for item in value]
    return value.detach().numpy().copy() if isinstance(value, torch.Tensor) else value


def as_tensors(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_tensors(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_tensors(item) for item in value]
    return torch.tensor(value) if isinstance(value, np.ndarray) else value
