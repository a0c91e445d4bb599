"""Parameters in 16 bits have float32 masters, in which the optimizer's updates add up."""

from functools import partial

import numpy as np
import pytest
from ml_dtypes import bfloat16

from minidl import Tensor, nn, optim

TYPES = [np.dtype(np.float16), np.dtype(bfloat16)]
OPTIMIZERS = [
    partial(optim.SGD, lr=3e-5),
    partial(optim.SGD, lr=3e-5, momentum=0.7, momentum_form="v"),
    partial(optim.Adam, lr=3e-5),
    partial(optim.AdamW, lr=3e-5),
    partial(optim.RMSprop, lr=1e-5, momentum=0.3, centered=True),
    partial(optim.Adagrad, lr=1e-4),
    partial(optim.LARS, lr=0.03),
    partial(optim.LAMB, lr=3e-5),
]


def parameter(values, dtype):
    return Tensor(np.asarray(values).astype(dtype), requires_grad=True)


def steps(optimizer, weight, count, seed=0):
    """Gradients that 16 bits can hold; most of them have one sign, so that the steps add up."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        weight.grad = (rng.normal(size=weight.shape) + 1.3).astype(bfloat16).astype(np.float16).astype(weight.dtype)
        optimizer.step()


def start(shape=(3, 7)):
    values = np.random.default_rng(5).uniform(0.7, 1.9, shape)
    return values.astype(bfloat16)  # float16 holds them, too


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("make", OPTIMIZERS, ids=lambda make: make.func.__name__)
def test_steps_that_16_bits_would_round_away_add_up_as_in_float32(make, dtype):
    narrow, wide = parameter(start(), dtype), parameter(start(), np.float32)
    first, second = make([narrow]), make([wide])
    steps(first, narrow, 1)
    assert (narrow.data == start().astype(dtype)).mean() > 0.8  # a step is less than half of the last place
    steps(second, wide, 1)
    steps(first, narrow, 200, seed=1)
    steps(second, wide, 200, seed=1)
    assert narrow.dtype == dtype
    assert (narrow.data != start().astype(dtype)).mean() > 0.1
    assert (first.state[narrow]["master_param"] == wide.data).all()  # to the bit
    assert (narrow.data == wide.data.astype(dtype)).all()
    arrays = [value for value in first.state[narrow].values() if isinstance(value, np.ndarray)]
    assert {array.dtype for array in arrays} == {np.dtype(np.float32)}


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_a_weight_that_somebody_else_writes_is_its_new_master(dtype, shape):
    weight = parameter(start(shape), dtype)
    optimizer = optim.SGD([weight], lr=1e-4)
    steps(optimizer, weight, 3)
    master = optimizer.state[weight]["master_param"].copy()
    written = np.arange(weight.size).reshape(shape) % 2 == 0
    weight.data[written] = 0.3
    expected = np.where(written, weight.data.astype(np.float32), master)
    assert (optimizer.state_dict()["state"][0]["master_param"] == expected).all()
    weight.grad = np.ones(shape, dtype)
    optimizer.step()
    reference = parameter(expected, np.float32)
    reference.grad = np.ones(shape, np.float32)
    optim.SGD([reference], lr=1e-4).step()
    assert (optimizer.state[weight]["master_param"] == reference.data).all()


def test_a_weight_beyond_the_range_of_float16_keeps_its_master():
    weight = parameter([65_000.0], np.float16)
    optimizer = optim.SGD([weight], lr=1.0)
    for gradient in (-1200.0, 900.0):
        weight.grad = np.array([gradient], np.float16)
        optimizer.step()
    assert optimizer.state[weight]["master_param"].tolist() == [65_000 - 24 + 1200 - 900 + 16]  # 64992 is the nearest


@pytest.mark.parametrize("make", OPTIMIZERS, ids=lambda make: make.func.__name__)
def test_a_loaded_state_goes_on_to_the_same_bits(make):
    weight, other = (parameter(start(), bfloat16) for _ in range(2))
    optimizer, loaded = make([weight]), make([other])
    steps(optimizer, weight, 9)
    loaded.load_state_dict(optimizer.state_dict())
    other.copy_(weight)  # after its state: the order does not matter
    for each, its in ((optimizer, weight), (loaded, other)):
        steps(each, its, 9, seed=2)
    assert (optimizer.state[weight]["master_param"] == loaded.state[other]["master_param"]).all()
    assert (weight.data == other.data).all()


@pytest.mark.parametrize("make", OPTIMIZERS, ids=lambda make: make.func.__name__)
def test_states_are_exchanged_with_parameters_that_have_no_masters(make):
    """Such as those of a run in float32, or of PyTorch, which has no masters."""
    narrow, wide = parameter(start(), bfloat16), parameter(start(), np.float32)
    steps(optimizer := make([narrow]), narrow, 5)
    steps(without := make([wide]), wide, 5)
    narrow_state, wide_state = optimizer.state_dict()["state"][0], without.state_dict()["state"].get(0, {})
    assert narrow_state.keys() - {"master_param"} == wide_state.keys()
    for to, saved in ((make([parameter(start(), np.float32)]), optimizer), (make([narrow]), without)):
        to.load_state_dict(saved.state_dict())
        kept = to.state_dict()["state"].get(0, {})
        assert ("master_param" in kept) == (saved is without and bool(wide_state))
        assert all((kept[name] == wide_state[name]).all() for name in wide_state)


def test_a_model_may_be_converted_between_two_steps():
    model = nn.Linear(7, 3, bias=False)
    optimizer, before = optim.Adam(model.parameters(), lr=1e-4, eps=0.0), model.weight.data.copy()
    for dtype in ("float32", "bfloat16", "float16", "float32", "bfloat16", "float64"):
        model.to(dtype)
        for _ in range(30):
            model.weight.grad = np.ones((3, 7), dtype)
            optimizer.step()
        saved = optimizer.state_dict()
        assert ("master_param" in saved["state"][0]) == dtype.endswith("16")
        optim.Adam(model.parameters()).load_state_dict(saved)
    moved = before - model.weight.data
    assert np.abs(moved - 6 * 30 * 1e-4).max() < 4 * 2.0**-10  # at most half a unit of bfloat16 at each conversion


def test_a_master_of_another_shape_is_refused():
    weight = parameter(start(), bfloat16)
    optimizer = optim.SGD([weight], lr=0.1)
    steps(optimizer, weight, 1)
    saved = optimizer.state_dict()
    saved["state"][0]["master_param"] = np.ones((7, 3), np.float32)
    with pytest.raises(ValueError, match=r"the saved master_param of parameter 0 has shape \(7, 3\), the parameter"):
        optimizer.load_state_dict(saved)
