"""replace_layers puts one module in the place of another under all its names."""

from __future__ import annotations

import pytest

from minidl import nn


def relu_for_tanh(name, module):
    return nn.ReLU() if isinstance(module, nn.Tanh) else None


def test_the_rule_sees_every_module_once_with_its_first_name_parents_first():
    shared = nn.Linear(2, 2)
    model = nn.Sequential(shared, nn.Sequential(nn.Tanh(), shared))
    seen = []
    assert nn.replace_layers(model, lambda name, module: seen.append((name, type(module).__name__))) is model
    assert seen == [("", "Sequential"), ("0", "Linear"), ("1", "Sequential"), ("1.0", "Tanh")]


def test_a_shared_module_is_replaced_once_under_all_its_names():
    tanh = nn.Tanh()
    model = nn.replace_layers(nn.Sequential(tanh, nn.Sequential(nn.Linear(2, 2), tanh)), relu_for_tanh)
    assert isinstance(model[0], nn.ReLU)
    assert model[0] is model[1][1]
    assert isinstance(nn.replace_layers(nn.Tanh(), relu_for_tanh), nn.ReLU)  # the model itself


def test_a_replacement_may_contain_the_module_that_it_replaces():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    first = model[0]
    nn.replace_layers(
        model, lambda name, module: nn.Sequential(module, nn.Dropout(0.5)) if isinstance(module, nn.Linear) else None
    )
    assert model[0][0] is first
    assert len(model[1]) == 2
    assert list(model.state_dict()) == ["0.0.weight", "0.0.bias", "1.0.weight", "1.0.bias"]


def test_modules_that_contain_each_other_are_walked_once():
    class Ring(nn.Module):
        pass

    first, second = Ring(), Ring()
    first.other, second.other, second.act = second, first, nn.Tanh()
    assert nn.replace_layers(first, relu_for_tanh) is first
    assert isinstance(second.act, nn.ReLU)
    assert second.other is first


def test_a_rule_that_returns_something_else_is_refused():
    with pytest.raises(TypeError, match=r"returned <class '.*ReLU'> for '0', a module or None is expected"):
        nn.replace_layers(nn.Sequential(nn.Tanh()), lambda name, module: nn.ReLU if name else None)


def test_a_model_may_replace_its_own_layers_in_a_block_of_building():
    class Small(nn.Module):
        def __init__(self):
            self.layers = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
            nn.replace_layers(self, lambda name, module: nn.Linear(3, 4, False) if name == "layers.0" else None)

    with nn.building(lambda model: model):
        model = Small()
    assert [name for name, _ in model.named_parameters()] == ["layers.0.weight"]
