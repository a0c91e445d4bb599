"""Optimizer state keyed by parameter name, as checkpoints store it.

`Optimizer.state_dict()` numbers parameters, as PyTorch does, in the order of the groups. A name identifies a parameter
on every rank, whether the rank holds all of it or a shard.

    {"state": {"fc.bias": {"momentum_buffer": array}, ...}, "param_groups": [{"lr": 0.1, ..., "params": ["fc.bias"]}]}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minidl.optim.optimizer import Optimizer
from minidl.optim.state_dict import check_keys
from minidl.tensor import Tensor


def named_state(optimizer: Optimizer, names: Mapping[Tensor, str]) -> dict[str, Any]:
    """Return `optimizer.state_dict()` with names in place of numbers.

    A parameter outside the model, such as one of the loss, is named by its number: "4".
    """
    saved, name_of = optimizer.state_dict(), _names(optimizer, names)
    return {
        "state": {name_of[number]: values for number, values in saved["state"].items()},
        "param_groups": [
            {**group, "params": [name_of[number] for number in group["params"]]} for group in saved["param_groups"]
        ],
    }


def load_named_state(optimizer: Optimizer, names: Mapping[Tensor, str], saved: Mapping[str, Any]) -> None:
    """Load the state of the whole model, as `named_state` returned it; the model here may be a split one.

    Parameters that this rank does not hold are skipped; a sharded one takes its shard of every array. The options of
    each group, such as its learning rate, are restored, too.

    Raises ValueError for the state of another optimizer, with all names and shapes that differ; nothing is changed.
    """
    check_keys(saved)
    mine, old = named_state(optimizer, names)["param_groups"], saved["param_groups"]
    if len(mine) != len(old):
        raise ValueError(f"the saved optimizer has {len(old)} parameter groups, this one has {len(mine)}")
    problems = []
    for index, (here, there) in enumerate(zip(mine, old, strict=True)):
        if missing := [name for name in here["params"] if name not in there["params"]]:
            problems.append(f"group {index} of the saved optimizer lacks {', '.join(missing)}")
        if unexpected := [name for name in there["params"] if name not in here["params"]]:
            problems.append(f"group {index} of this optimizer lacks {', '.join(unexpected)}, which was saved")
    numbered = {name: number for number, name in enumerate(_names(optimizer, names))}
    parameters = dict(zip(numbered, _parameters(optimizer), strict=True))
    listed = {name for group in old for name in group["params"]}
    state: dict[int, dict[str, Any]] = {}
    for name, values in saved["state"].items():
        if name not in listed:
            problems.append(f"the saved state is of {name}, which no saved group lists")
        elif name in parameters and getattr(parameters[name], "held", True):
            own = {key: _own_shard(parameters[name], key, value) for key, value in values.items()}
            problems += _wrong_shapes(name, parameters[name], own)
            state[numbered[name]] = own
    if problems:
        raise ValueError("; ".join(problems))
    groups = [
        {**there, "params": [numbered[name] for name in here["params"]]} for here, there in zip(mine, old, strict=True)
    ]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def by_name(optimizer: Optimizer, names: Mapping[Tensor, str], saved: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a state with numbers, as in checkpoints of format 1, to the names of this optimizer's parameters.

    Raises ValueError if the number of groups, or of parameters in a group, differs.
    """
    check_keys(saved)
    mine = named_state(optimizer, names)["param_groups"]
    sizes = [[len(group["params"]) for group in groups] for groups in (saved["param_groups"], mine)]
    if sizes[0] != sizes[1]:
        raise ValueError(f"the saved optimizer has groups of {sizes[0]} parameters, this one has groups of {sizes[1]}")
    groups = [{**old, "params": new["params"]} for old, new in zip(saved["param_groups"], mine, strict=True)]
    numbers = [number for old in saved["param_groups"] for number in old["params"]]
    name_of = dict(zip(numbers, (name for new in mine for name in new["params"]), strict=True))
    if unknown := [number for number in saved["state"] if number not in name_of]:
        raise ValueError(f"the saved state has parameters that no saved group lists: {unknown}")
    return {"state": {name_of[number]: values for number, values in saved["state"].items()}, "param_groups": groups}


def _parameters(optimizer: Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _names(optimizer: Optimizer, names: Mapping[Tensor, str]) -> list[str]:
    """The names of the optimizer's parameters, in the order of their numbers."""
    return [names.get(parameter, str(number)) for number, parameter in enumerate(_parameters(optimizer))]


def _own_shard(parameter: Tensor, key: str, value: Any) -> Any:
    """This rank's shard of an array for the whole parameter; the number of steps as it is."""
    shard = getattr(parameter, "shard", None)
    return value if shard is None or key == "step" or value is None else shard.taken_from(value, parameter.shape)


def _wrong_shapes(name: str, parameter: Tensor, values: Mapping[str, Any]) -> list[str]:
    """One message for each state array whose shape differs from its parameter's."""
    return [
        f"the saved {key} of {name} has shape {np.shape(value)}, the parameter {parameter.shape}"
        for key, value in values.items()
        if key != "step" and value is not None and np.shape(value) != parameter.shape
    ]
