"""nn.using: a module computes with another version of its weights, and its own parameters get the gradients."""

from __future__ import annotations

import numpy as np
import pytest

from minidl import Tensor, nn
from tests.together import naming


def test_the_gradient_is_that_of_the_version_however_the_module_is_updated_meanwhile():
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)).double()
    weights = {name: p.data * 2 for name, p in model.named_parameters()}
    twin = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)).double()
    twin.load_state_dict(weights)
    x = np.random.default_rng(0).normal(size=(5, 4))
    before = model.state_dict()
    with nn.using(model, weights):
        y = model(x)
    for name, array in model.state_dict().items():
        np.testing.assert_array_equal(array, before[name])
    for parameter in model.parameters():
        parameter.copy_(0.0)
    y.sum().backward()
    twin(x).sum().backward()
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        np.testing.assert_array_equal(ours.grad, theirs.grad)


def test_gradients_of_several_versions_add_up_and_call_the_hooks_of_the_parameter():
    layer = nn.Linear(1, 1, bias=False)
    called = []
    layer.weight.register_post_accumulate_grad_hook(lambda parameter: called.append(float(parameter.grad.item())))
    outputs = []
    for x in (2.0, 3.0):
        with nn.using(layer, {"weight": np.ones((1, 1), np.float32)}):
            outputs.append(layer(Tensor([[x]])))
    for output in outputs:
        output.sum().backward()
    assert called == [2.0, 5.0]


def test_a_tied_parameter_is_replaced_under_all_its_names():
    model = nn.models.GPT(vocab_size=5, block_size=4, n_layer=1, n_head=1, n_embd=4)
    with nn.using(model, {"lm_head.weight": model.lm_head.weight.data + 1}):
        assert model.transformer.wte.weight is model.lm_head.weight
        model(np.array([[1, 2]])).sum().backward()
    assert model.transformer.wte.weight is model.lm_head.weight
    assert model.lm_head.weight.grad is not None
    twice = dict.fromkeys(("lm_head.weight", "transformer.wte.weight"), model.lm_head.weight.data)
    with pytest.raises(ValueError, match="name it once"), nn.using(model, twice):
        pass


def test_frozen_parameters_stay_frozen_and_others_keep_their_own_weights():
    model = nn.Linear(2, 2)
    model.bias.requires_grad = False
    with nn.using(model, {"bias": np.ones(2, np.float32)}):
        assert not model.bias.requires_grad
        model(Tensor([[1.0, 1.0]])).sum().backward()
    assert model.bias.grad is None
    assert model.weight.grad is not None


def test_the_modules_own_parameters_are_back_after_an_error():
    model = nn.Linear(2, 2)
    weight = model.weight
    with pytest.raises(ZeroDivisionError), nn.using(model, {"weight": weight.data}):
        raise ZeroDivisionError
    assert model.weight is weight


def test_weights_that_are_none_of_the_module_are_refused():
    for weights, message in [
        ({"weigth": np.ones((2, 2), np.float32)}, "no values of a parameter 'weigth': name some of weight, bias"),
        ({"bias": np.ones(3, np.float32)}, r"'bias' has shape \(2,\) and dtype float32, got \(3,\) and float32"),
        ({"bias": np.ones(2)}, "got .* and float64"),
    ]:
        with naming(message), pytest.raises(ValueError, match=message), nn.using(nn.Linear(2, 2), weights):
            pass
