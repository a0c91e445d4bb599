"""What all optimizers share: groups, gradients, saved state, and errors that say what to do."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest

from minidl import Tensor, kernels, nn, optim
from tests.kernels import stand_in
from tests.together import naming


def weights(*shape: int, dtype: str = "float64", seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).normal(size=shape).astype(dtype), requires_grad=True)


MAKERS = {
    "SGD": lambda params: optim.SGD(params, lr=0.1, momentum=0.9, weight_decay=0.01),
    "SGD, v-form": lambda params: optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True, momentum_form="v"),
    "Adagrad": lambda params: optim.Adagrad(params, lr=0.1, initial_accumulator_value=0.5),
    "RMSprop": lambda params: optim.RMSprop(params, momentum=0.9, centered=True),
    "Adam": lambda params: optim.Adam(params, weight_decay=0.01),
    "AdamW": lambda params: optim.AdamW(params),
    "LARS": lambda params: optim.LARS(params, lr=0.1),
    "LAMB": lambda params: optim.LAMB(params),
}
every_optimizer = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def train(optimizer: optim.Optimizer, count: int, seed: int = 0) -> None:
    random = np.random.default_rng(seed)
    for _ in range(count):
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = random.normal(size=parameter.shape).astype(parameter.dtype)
        optimizer.step()


# ---- the step ----


@every_optimizer
def test_the_step_writes_into_the_same_array_keeps_its_dtype_and_only_reads_the_gradient(make):
    for dtype in "float32", "float64":
        w = weights(3, 4, dtype=dtype)
        array, before = w.data, w.data.copy()
        optimizer = make([w])
        train(optimizer, 2)
        assert w.data is array
        assert w.dtype == dtype
        assert not np.array_equal(before, array)
        gradient = w.grad.copy()
        optimizer.step()
        np.testing.assert_array_equal(w.grad, gradient)


@every_optimizer
def test_parameters_of_no_dimension_no_elements_and_no_gradient_are_stepped_or_passed_over(make):
    scalar, empty, unused = weights(), weights(0, 3), weights(3, seed=1)
    before, unused_before = float(scalar.data), unused.data.copy()
    optimizer = make([scalar, empty, unused])
    for _ in range(3):
        scalar.grad, empty.grad = np.array(0.7), np.ones((0, 3))
        optimizer.step()
    assert isinstance(scalar.data, np.ndarray)
    assert scalar.shape == ()
    assert np.isfinite(scalar.data)
    assert float(scalar.data) != before
    assert empty.shape == (0, 3)
    np.testing.assert_array_equal(unused.data, unused_before)
    assert unused not in optimizer.state


def test_a_tied_parameter_counts_once():
    tied, single = weights(3), weights(3)
    optimizer = MAKERS["Adam"]([tied, tied])
    train(optimizer, 3)
    train(MAKERS["Adam"]([single]), 3)
    np.testing.assert_array_equal(tied.data, single.data)
    assert len(optimizer.param_groups[0]["params"]) == 1


def test_zero_grad_forgets_the_gradients_or_fills_them_with_zeros():
    w, without = weights(3), weights(2)
    optimizer = optim.SGD([w, without])
    w.grad = gradient = np.ones(3)
    optimizer.zero_grad(set_to_none=False)
    assert w.grad is gradient
    np.testing.assert_array_equal(gradient, 0)
    assert without.grad is None
    optimizer.zero_grad()
    assert w.grad is None


def test_a_gradient_of_another_shape_or_type_is_refused():
    w = weights(3)
    w.grad = np.ones(4)
    with pytest.raises(ValueError, match=r"shape \(3,\) has a gradient of shape \(4,\)"):
        optim.SGD([w]).step()
    w.grad = Tensor(np.ones(3))
    with pytest.raises(TypeError, match=r"grad is an array, not a Tensor: assign the Tensor's \.data"):
        optim.SGD([w]).step()


# ---- groups ----


def test_a_group_added_later_takes_the_defaults_for_what_it_does_not_say():
    a, b = weights(3), weights(3, seed=1)
    optimizer = optim.SGD([a], lr=0.1, momentum=0.9)
    optimizer.add_param_group({"params": b, "lr": 0.5, "name": "head"})
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.5]
    assert optimizer.param_groups[1]["momentum"] == 0.9
    assert optimizer.param_groups[1]["params"] == [b]
    assert "lr=0.1, momentum=0.9" in repr(optimizer)


def test_bad_input_is_named():
    for make, error, message in [
        (lambda w: optim.SGD([]), ValueError, "SGD got no parameters"),
        (lambda w: optim.SGD(w), TypeError, r"not one Tensor: put it in \[\]"),
        (lambda w: optim.SGD({"params": [w]}), TypeError, "not one dict"),
        (lambda w: optim.SGD(nn.Linear(2, 2)), TypeError, r"not a Linear: give model.parameters\(\)"),
        (lambda w: optim.SGD(nn.Linear(2, 2).parameters), TypeError, r"was not called: give model.parameters\(\)"),
        (lambda w: optim.SGD(nn.Linear(2, 2).state_dict()), TypeError, r"a dict of 2 keys: give model.parameters\(\)"),
        (lambda w: optim.SGD({w}), TypeError, "order changes"),
        (lambda w: optim.SGD([w.data]), TypeError, "updates Tensors.*not ndarray"),
        (lambda w: optim.SGD([("weight", w)]), TypeError, "not tuple"),
        (lambda w: optim.SGD([Tensor(np.arange(3))]), TypeError, r"holds int64, .*convert it with \.float"),
        (lambda w: optim.SGD([w * 2]), ValueError, "result of an operation"),
        (lambda w: optim.SGD([{"params": [w]}, w]), TypeError, "mixes groups"),
        (lambda w: optim.SGD([{"params": [w]}, {"params": [w]}]), ValueError, "more than one group"),
        (lambda w: optim.SGD([{"parameters": [w]}]), ValueError, "needs the key 'params'"),
        (lambda w: optim.SGD([{"params": [w], "momentun": 0.9}]), ValueError, "no option 'momentun'.*lr, momentum"),
        (lambda w: optim.SGD([{"params": [w], "lr": -1.0}]), ValueError, "lr must be at least 0, got -1.0"),
        (lambda w: optim.SGD([w], lr="0.1"), TypeError, "got '0.1' of type str: write 0.1"),
        (lambda w: optim.SGD([w], lr=w.sum()), TypeError, r"of type Tensor: take its number with \.item\(\)"),
        (lambda w: optim.SGD([w], momentum=-1), ValueError, "momentum must be at least 0"),
        (lambda w: optim.SGD([w], nesterov=True), ValueError, "nesterov needs momentum above 0"),
        (lambda w: optim.SGD([w], momentum=0.9, dampening=0.1, nesterov=True), ValueError, "dampening=0.1"),
        (lambda w: optim.SGD([w], momentum_form="w"), ValueError, "momentum_form must be 'u' or 'v', got 'w': 'u' has"),
        (lambda w: optim.Adagrad([w], lr_decay=-1), ValueError, "lr_decay"),
        (lambda w: optim.RMSprop([w], alpha=1.1), ValueError, "alpha must be from 0 to 1"),
        (lambda w: optim.Adam([w], betas=(0.9, 1.0)), ValueError, r"betas\[1\] must be at .* below 1, got 1.0"),
        (lambda w: optim.AdamW([w], betas=("a", "b")), TypeError, r"betas\[0\] must be a number"),
        (lambda w: optim.LARS([w], lr=1.0, trust_coefficient=-1), ValueError, "trust_coefficient"),
        (lambda w: optim.LAMB([w], betas=(-0.1, 0.9)), ValueError, "betas"),
    ]:
        with naming(message), pytest.raises(error, match=message):
            make(weights(3))


# ---- saved state ----


def pair(make: Any) -> tuple[list[Tensor], optim.Optimizer]:
    parameters = [weights(3, 4), weights(2, seed=1)]
    return parameters, make(parameters)


@every_optimizer
def test_a_run_goes_on_from_its_saved_state_to_the_same_bits(make):
    parameters, optimizer = pair(make)
    train(optimizer, 5)
    saved, values = optimizer.state_dict(), [parameter.data.copy() for parameter in parameters]
    kept = copy.deepcopy(saved)
    train(optimizer, 5, seed=1)

    others, other = pair(make)
    for parameter, value in zip(others, values, strict=True):
        parameter.copy_(value)
    other.load_state_dict(saved)
    train(other, 5, seed=1)
    for ours, theirs in zip(parameters, others, strict=True):
        np.testing.assert_array_equal(ours.data, theirs.data)
    assert_same_tree(saved, kept)  # what is saved and what is loaded are copies
    other.load_state_dict({"state": {}, "param_groups": json.loads(json.dumps(saved["param_groups"]))})
    assert other.state_dict()["param_groups"] == saved["param_groups"]


@every_optimizer
def test_a_step_does_not_read_parameters_that_this_rank_does_not_hold(make):
    with nn.building(lambda model: model[1]):
        model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    optimizer = make(list(model.parameters()))
    before = model[1].weight.numpy().copy()
    model[1](np.ones((4, 3), np.float32)).sum().backward()
    optimizer.step()
    assert (model[1].weight.numpy() != before).any()


@every_optimizer
def test_a_state_saved_from_numpy_goes_on_in_another_array_module(make):
    _, optimizer = pair(make)
    train(optimizer, 2)
    saved = optimizer.state_dict()
    with stand_in.installed() as cupy, kernels.use("cupy"):
        _, other = pair(make)
        other.load_state_dict(saved)
        for state in other.state.values():
            assert all(isinstance(value, (int, cupy.ndarray)) for value in state.values())
        assert_same_tree(other.state_dict(), saved)


def test_the_layout_is_pytorchs():
    w = weights(2)
    optimizer = optim.Adam([{"params": [weights(3)]}, {"params": [w], "lr": 0.5}])
    w.grad = np.array([1.0, -2.0])
    optimizer.step()
    saved = optimizer.state_dict()
    assert [group["params"] for group in saved["param_groups"]] == [[0], [1]]
    assert saved["param_groups"][1]["lr"] == 0.5
    assert list(saved["state"]) == [1]
    assert sorted(saved["state"][1]) == ["exp_avg", "exp_avg_sq", "step"]
    np.testing.assert_allclose(saved["state"][1]["exp_avg"], [0.1, -0.2])
    assert saved["state"][1]["step"].shape == ()
    assert saved["state"][1]["step"] == 1


def test_loading_keeps_the_group_that_a_schedule_or_a_caller_holds():
    optimizer = optim.SGD([weights(2)], lr=0.1)
    group = optimizer.param_groups[0]
    optimizer.load_state_dict(optim.SGD([weights(2)], lr=0.7).state_dict())
    assert optimizer.param_groups[0] is group
    assert group["lr"] == 0.7


def test_a_copied_optimizer_updates_the_copied_parameters():
    w = weights(3)
    optimizer = optim.Adam([w], lr=0.1)
    train(optimizer, 2)
    for other in (copy.deepcopy((w, optimizer)), pickle.loads(pickle.dumps((w, optimizer)))):
        copied, its_optimizer = other
        before = w.data.copy()
        train(its_optimizer, 1)
        assert its_optimizer.param_groups[0]["params"][0] is copied
        assert its_optimizer.state[copied]["step"] == 3
        assert not np.array_equal(copied.data, before)
        np.testing.assert_array_equal(w.data, before)


def test_a_state_that_does_not_fit_is_refused_and_changes_nothing():
    for change, message in [
        (lambda saved: {}, "not an optimizer's state"),
        (
            lambda saved: {**saved, "param_groups": [{"lr": 0.3}]},
            "each of 'param_groups' is a dict with the key 'params'",
        ),
        (lambda saved: with_group(saved, params=3), "each of 'param_groups' is a dict with the key 'params', a list"),
        (lambda saved: {**saved, "state": {0: np.ones(3)}}, "'state' has a dict for each parameter"),
        (lambda saved: {**saved, "param_groups": saved["param_groups"] * 2}, "has 2 parameter groups, this one has 1"),
        (lambda saved: with_group(saved, params=[0]), "has 1 parameters, here it has 2"),
        (lambda saved: with_group(saved, params=[0, 5]), "parameter 1 that no saved group lists"),
        (lambda saved: with_group(saved, amsgrad=True), "amsgrad=True, which Adam does not have"),
        (lambda saved: with_group(saved, lr=-1.0), "lr must be at least 0"),
        (lambda saved: {**saved, "state": {0: {"step": 1}}}, "parameter 0 lacks exp_avg, exp_avg_sq, which Adam needs"),
        (lambda saved: with_group(saved, params=[[0], 1]), r"group 0 of the saved optimizer lists the parameter \[0\]"),
        (lambda saved: with_state(saved, step="three"), "the saved step of parameter 0 is 'three', not a number of"),
        (lambda saved: with_state(saved, step=np.zeros(3)), "the saved step of parameter 0 is array"),
        (lambda saved: with_state(saved, exp_avg=np.zeros((4, 3))), r"exp_avg of parameter 0 has shape \(4, 3\)"),
        (lambda saved: optim.SGD([weights(3, 4), weights(2)], momentum=0.9).state_dict(), "option momentum=0.9"),
        (lambda saved: optim.SGD([weights(3, 4), weights(2)]).state_dict(), "lacks betas, eps"),
    ]:
        with naming(message):
            parameters = [weights(3, 4), weights(2)]
            optimizer = optim.Adam(parameters, lr=0.1)
            train(optimizer, 2)
            before = optimizer.state_dict()
            with pytest.raises(ValueError, match=message):
                optimizer.load_state_dict(change(copy.deepcopy(before)))
            assert_same_tree(optimizer.state_dict(), before)


def test_a_state_without_a_momentum_form_is_loaded_in_pytorchs_form():
    _, optimizer = pair(MAKERS["SGD"])
    train(optimizer, 2)
    saved = optimizer.state_dict()
    del saved["param_groups"][0]["momentum_form"]  # as PyTorch, and checkpoints of earlier versions, have it
    _, other = pair(lambda params: optim.SGD(params, momentum_form="v"))
    other.load_state_dict(saved)
    assert other.param_groups[0]["momentum_form"] == "u"
    assert other.state_dict()["state"].keys() == optimizer.state_dict()["state"].keys()


def test_a_state_of_another_optimizer_is_refused():
    saved = optim.SGD([weights(3, 4)], momentum=0.9, momentum_form="v").state_dict()
    saved["param_groups"][0]["momentum"] = 0.0
    with pytest.raises(ValueError, match="option momentum_form='v', which Adam does not have"):
        optim.Adam([weights(3, 4)]).load_state_dict(saved)
    with pytest.raises(ValueError, match="use Adam"):
        optim.AdamW([weights(2)]).load_state_dict(optim.Adam([weights(2)]).state_dict())


def with_group(saved: dict[str, Any], **options: Any) -> dict[str, Any]:
    saved["param_groups"][0].update(options)
    return saved


def with_state(saved: dict[str, Any], **values: Any) -> dict[str, Any]:
    saved["state"][0].update(values)
    return saved


def assert_same_tree(actual: dict[str, Any], expected: dict[str, Any]) -> None:
    assert actual["param_groups"] == expected["param_groups"]
    assert actual["state"].keys() == expected["state"].keys()
    for number, values in expected["state"].items():
        assert actual["state"][number].keys() == values.keys()
        for name, value in values.items():
            np.testing.assert_array_equal(actual["state"][number][name], value)
