"""An optimizer's state by name is that of every part of the model, and what does not fit is listed at once."""

import numpy as np
import pytest

from minidl import Tensor, nn, optim
from minidl.nn import Shard
from minidl.optim.named_state import by_name, load_named_state, named_state
from tests.together import naming


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).double()


def names_of(module: nn.Module) -> dict[Tensor, str]:
    return {parameter: name for name, parameter in module.named_parameters()}


def adam_w(module: nn.Module) -> optim.Optimizer:
    """Two groups, neither in the order of the model."""
    parameters = list(module.parameters())
    vectors = [parameter for parameter in parameters if parameter.ndim < 2]
    matrices = [parameter for parameter in reversed(parameters) if parameter.ndim == 2]
    return optim.AdamW([{"params": vectors, "weight_decay": 0.0}, {"params": matrices, "lr": 3e-3}], lr=1e-2)


def trained() -> tuple[nn.Module, optim.Optimizer]:
    """A model and its optimizer after two steps."""
    module = model()
    optimizer = adam_w(module)
    for seed in range(2):
        module.zero_grad()
        (module(Tensor(np.random.default_rng(seed).normal(size=(5, 4)))) ** 2).sum().backward()
        optimizer.step()
    return module, optimizer


def test_names_stand_where_state_dict_has_numbers():
    module, optimizer = trained()
    saved, numbered = named_state(optimizer, names_of(module)), optimizer.state_dict()
    assert [group["params"] for group in saved["param_groups"]] == [["0.bias", "2.bias"], ["2.weight", "0.weight"]]
    np.testing.assert_equal(list(saved["state"].values()), list(numbered["state"].values()))
    assert list(saved["state"]) == ["0.bias", "2.bias", "2.weight", "0.weight"]
    assert by_name(optimizer, names_of(module), numbered).keys() == saved.keys()
    np.testing.assert_equal(by_name(optimizer, names_of(module), numbered), saved)


def test_loaded_state_and_options_are_those_that_were_saved():
    module, optimizer = trained()
    saved = named_state(optimizer, names_of(module))
    saved["param_groups"][1]["lr"] = 0.5
    again = model()
    other = adam_w(again)
    load_named_state(other, names_of(again), saved)
    np.testing.assert_equal(named_state(other, names_of(again)), saved)


def test_a_tied_parameter_has_its_first_name():
    tied = nn.models.GPT(vocab_size=7, block_size=4, n_layer=1, n_head=2, n_embd=4)
    optimizer = optim.SGD(tied.parameters(), lr=0.1)
    (group,) = named_state(optimizer, names_of(tied))["param_groups"]
    (names,) = tied.ties()
    assert names[0] in group["params"]
    assert not set(names[1:]) & set(group["params"])


def test_a_part_gets_the_state_of_what_it_holds():
    for half in [0, 1]:
        with naming(half):
            module, optimizer = trained()
            saved = named_state(optimizer, names_of(module))
            with nn.building(lambda model, half=half: model[2 * half]):
                part = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
            part_optimizer = adam_w(part)
            load_named_state(part_optimizer, names_of(part), saved)
            mine = named_state(part_optimizer, names_of(part))
            assert [group["params"] for group in mine["param_groups"]] == [
                group["params"] for group in saved["param_groups"]
            ]
            assert sorted(mine["state"]) == [f"{2 * half}.bias", f"{2 * half}.weight"]


def test_a_shard_gets_its_share_of_whole_arrays():
    for index in [0, 1]:
        module, optimizer = trained()
        saved = named_state(optimizer, names_of(module))
        split = model()
        shard = Shard("tp", index, 2, dim=1)
        split[0].weight.cut(shard)
        split_optimizer = adam_w(split)
        load_named_state(split_optimizer, names_of(split), saved)
        mine = named_state(split_optimizer, names_of(split))["state"]
        for key in ("exp_avg", "exp_avg_sq"):
            np.testing.assert_array_equal(mine["0.weight"][key], shard.cut(saved["state"]["0.weight"][key]))
        np.testing.assert_equal(mine["2.weight"], saved["state"]["2.weight"])
        assert mine["0.weight"]["step"] == 2


def test_everything_that_does_not_fit_is_listed_and_nothing_is_changed():
    module, optimizer = trained()
    saved = named_state(optimizer, names_of(module))
    saved["param_groups"][0]["params"] = ["0.bias", "3.bias"]
    saved["state"]["3.bias"] = saved["state"].pop("2.bias")
    saved["state"]["4.bias"] = {}
    saved["state"]["0.weight"]["exp_avg"] = np.ones((6, 5))
    before = named_state(optimizer, names_of(module))
    with pytest.raises(ValueError, match="saved optimizer") as error:
        load_named_state(optimizer, names_of(module), saved)
    assert str(error.value).split("; ") == [
        "group 0 of the saved optimizer lacks 2.bias",
        "group 0 of this optimizer lacks 3.bias, which was saved",
        "the saved exp_avg of 0.weight has shape (6, 5), the parameter (6, 4)",
        "the saved state is of 4.bias, which no saved group lists",
    ]
    np.testing.assert_equal(named_state(optimizer, names_of(module)), before)


def test_a_parameter_that_is_none_of_the_models_has_its_number_for_a_name():
    module = model()
    optimizer = optim.SGD([*module.parameters(), Tensor([1.0, 2.0], requires_grad=True)], lr=0.1)
    assert named_state(optimizer, names_of(module))["param_groups"][0]["params"][-1] == "4"


def test_numbers_that_no_group_lists_are_refused():
    module, optimizer = trained()
    numbered = optimizer.state_dict()
    numbered["state"][9] = numbered["state"].pop(0)
    with pytest.raises(ValueError, match=r"parameters that no saved group lists: \[9\]"):
        by_name(optimizer, names_of(module), numbered)
