"""Initialisation: the distributions of the formulas, from the seed alone."""

import numpy as np
import pytest

import minidl
from minidl import Tensor, nn
from minidl.nn import init
from tests.together import naming


def empty(*shape, dtype=np.float32):
    return Tensor(np.full(shape, np.nan, dtype))


def test_uniform_and_normal_have_the_moments_asked_for():
    for dtype in [np.float32, np.float64]:
        with naming(dtype):
            minidl.manual_seed(0)
            x = init.uniform_(empty(200, 200, dtype=dtype), -1.0, 3.0).data
            assert x.dtype == dtype
            assert x.min() >= -1
            assert x.max() < 3
            assert x.mean() == pytest.approx(1, abs=0.03)
            assert x.std() == pytest.approx(4 / np.sqrt(12), rel=0.02)
            y = init.normal_(empty(200, 200, dtype=dtype), 5.0, 2.0).data
            assert y.mean() == pytest.approx(5, abs=0.05)
            assert y.std() == pytest.approx(2, rel=0.02)


def test_constants_fill():
    assert (init.constant_(empty(3, 2), 7).data == 7).all()
    assert (init.zeros_(empty(3)).data == 0).all()
    assert (init.ones_(empty(3)).data == 1).all()


FAN_IN, FAN_OUT = 40 * 9, 60 * 9  # of a weight (60, 40, 3, 3)


def test_each_scheme_has_the_standard_deviation_of_its_formula():
    for fill, std in [
        (init.xavier_uniform_, np.sqrt(2 / (FAN_IN + FAN_OUT))),
        (init.xavier_normal_, np.sqrt(2 / (FAN_IN + FAN_OUT))),
        (lambda w: init.xavier_normal_(w, gain=2), 2 * np.sqrt(2 / (FAN_IN + FAN_OUT))),
        (init.kaiming_uniform_, np.sqrt(2 / FAN_IN)),
        (lambda w: init.kaiming_uniform_(w, a=np.sqrt(5)), np.sqrt(1 / 3 / FAN_IN)),
        (lambda w: init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu"), np.sqrt(2 / FAN_OUT)),
        (lambda w: init.kaiming_normal_(w, nonlinearity="linear"), np.sqrt(1 / FAN_IN)),
    ]:
        with naming(std):
            minidl.manual_seed(1)
            w = fill(empty(60, 40, 3, 3)).data
            assert w.std() == pytest.approx(std, rel=0.02)
            assert w.mean() == pytest.approx(0, abs=3 * std / np.sqrt(w.size))


def test_gains():
    gains = {"linear": 1, "conv2d": 1, "sigmoid": 1, "tanh": 5 / 3, "relu": np.sqrt(2), "selu": 0.75}
    for name, gain in gains.items():
        assert init.calculate_gain(name) == pytest.approx(gain), name
    assert init.calculate_gain("leaky_relu") == pytest.approx(np.sqrt(2 / 1.0001))
    assert init.calculate_gain("leaky_relu", 0.2) == pytest.approx(np.sqrt(2 / 1.04))


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="'swish'"):
        init.calculate_gain("swish")
    with pytest.raises(ValueError, match="'fan'"):
        init.kaiming_normal_(empty(2, 2), mode="fan")
    with pytest.raises(ValueError, match=r"at least 2 axes.*\(3,\)"):
        init.xavier_uniform_(empty(3))


def test_the_seed_decides_a_model_to_the_bit():
    for make in [lambda: nn.models.LeNet(8), lambda: nn.MultiheadAttention(8, 2)]:
        states = []
        for seed in (3, 3, 4):
            minidl.manual_seed(seed)
            states.append(make().state_dict())
        first, second, other = states
        assert all(np.array_equal(first[name], second[name]) for name in first)
        assert not all(np.array_equal(first[name], other[name]) for name in first)


def test_a_tensor_that_is_not_contiguous_gets_the_same_numbers():
    minidl.manual_seed(5)
    straight = init.normal_(empty(4, 6)).data
    minidl.manual_seed(5)
    turned = init.normal_(Tensor(np.empty((6, 4), np.float32).T)).data
    np.testing.assert_array_equal(turned, straight)


def test_filling_counts_as_a_write_in_place():
    w = nn.Parameter(np.ones((2, 2)))
    loss = (w * w).sum()
    init.uniform_(w)
    with pytest.raises(RuntimeError, match="overwritten in place"):
        loss.backward()


def test_linear_convolution_and_attention_start_as_pytorch_documents():
    minidl.manual_seed(6)
    linear = nn.Linear(100, 300)
    for array in (linear.weight.data, linear.bias.data):
        assert abs(array).max() <= 0.1
        assert array.std() == pytest.approx(0.1 / np.sqrt(3), rel=0.1)
    conv = nn.Conv2d(4, 200, 5)
    for array in (conv.weight.data, conv.bias.data):
        assert abs(array).max() <= 0.1
        assert array.std() == pytest.approx(0.1 / np.sqrt(3), rel=0.1)
    for parameter in nn.LSTM(50, 100).parameters():
        assert 0.099 < abs(parameter.data).max() <= 0.1
    attention = nn.MultiheadAttention(64, 4)
    assert attention.in_proj_weight.data.std() == pytest.approx(np.sqrt(2 / (64 + 192)), rel=0.05)
    assert not attention.in_proj_bias.data.any()
    assert not attention.out_proj.bias.data.any()
    assert nn.Embedding(100, 100).weight.data.std() == pytest.approx(1, rel=0.05)
