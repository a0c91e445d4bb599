"""Save and load an optimizer's state in PyTorch's layout, to resume training here or in PyTorch.

Parameters are numbered across all groups. A group lists the numbers of its parameters; the state maps each number to
what the rule stores for that parameter.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Any, Protocol

import numpy as np

from minidl.kernels import Array, array_module, to_numpy
from minidl.kernels.sixteen_bit import is_sixteen_bit
from minidl.optim.master_weights import MASTER, master_of
from minidl.tensor import Tensor

Group = dict[str, Any]  # of parameters: "params" is a list of tensors; all other keys are options

# Keys of a group other than its parameters and the optimizer's options: a name, and what schedules add.
EXTRA_KEYS = ("name", "initial_lr")

# PyTorch's options that choose an implementation of the same arithmetic, and its parameter names.
_WITHOUT_EFFECT = ("foreach", "fused", "capturable", "differentiable", "param_names")

# Options that PyTorch and older checkpoints lack, each with the value that means PyTorch's rule.
_BEYOND_PYTORCH = {"momentum_form": "u"}


class HasState(Protocol):
    """The attributes and methods of an optimizer that saving and loading use."""

    defaults: Group
    param_groups: list[Group]
    state: dict[Tensor, dict[str, Any]]

    def check_group(self, group: Group) -> None: ...

    def new_state(self, data: Array, group: Group) -> dict[str, Any]: ...


def save_state(optimizer: HasState) -> dict[str, Any]:
    """Implement `Optimizer.state_dict`."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for parameter, state in optimizer.state.items():
        if is_sixteen_bit(parameter.dtype) and state:
            master_of(parameter.data, state)  # brings it up to date
        else:
            state.pop(MASTER, None)  # of a parameter that was converted since
    number = {parameter: index for index, parameter in enumerate(parameters)}
    return {
        "state": {
            number[parameter]: {name: _saved(value) for name, value in state.items()}
            for parameter, state in sorted(optimizer.state.items(), key=lambda item: number[item[0]])
            if state
        },
        "param_groups": [
            {
                **{name: value for name, value in group.items() if name != "params"},
                "params": [number[parameter] for parameter in group["params"]],
            }
            for group in optimizer.param_groups
        ],
    }


def load_state(optimizer: HasState, saved: Mapping[str, Any]) -> None:
    """Implement `Optimizer.load_state_dict`: check everything first, then change the optimizer."""
    check_keys(saved)
    if len(saved["param_groups"]) != len(optimizer.param_groups):
        raise ValueError(
            f"the saved optimizer has {len(saved['param_groups'])} parameter groups, this one has "
            f"{len(optimizer.param_groups)}"
        )
    groups: list[Group] = []
    parameter_of: dict[Any, tuple[Tensor, Group]] = {}
    for index, (group, old) in enumerate(zip(optimizer.param_groups, saved["param_groups"], strict=True)):
        if len(old["params"]) != len(group["params"]):
            raise ValueError(
                f"group {index} of the saved optimizer has {len(old['params'])} parameters, here it has "
                f"{len(group['params'])}"
            )
        groups.append({**_options(optimizer, old, index), "params": group["params"]})
        for number, parameter in zip(old["params"], group["params"], strict=True):
            if not isinstance(number, Hashable):
                raise ValueError(f"group {index} of the saved optimizer lists the parameter {number!r}, not a number")
            parameter_of[number] = parameter, groups[-1]
    state: dict[Tensor, dict[str, Any]] = {}
    for number, values in saved["state"].items():
        if number not in parameter_of:
            raise ValueError(f"the saved state has a parameter {number!r} that no saved group lists")
        parameter, group = parameter_of[number]
        state[parameter] = _state(optimizer, parameter, group, number, values)
    for group, new in zip(optimizer.param_groups, groups, strict=True):
        group.clear()  # in place: a schedule may hold the group
        group.update(new)
    optimizer.state = state


def check_keys(saved: Any) -> None:
    """Raise ValueError unless this looks like an optimizer's state."""
    if not isinstance(saved, Mapping) or not {"state", "param_groups"} <= set(saved):
        raise ValueError("this is not an optimizer's state: it needs the keys 'state' and 'param_groups'")
    if not isinstance(saved["state"], Mapping) or not isinstance(saved["param_groups"], (list, tuple)):
        raise ValueError("this is not an optimizer's state: 'state' is a dict and 'param_groups' a list of dicts")
    if not all(
        isinstance(group, Mapping) and isinstance(group.get("params"), Collection) for group in saved["param_groups"]
    ):
        raise ValueError(
            "this is not an optimizer's state: each of 'param_groups' is a dict with the key 'params', a list"
        )
    if not all(isinstance(values, Mapping) for values in saved["state"].values()):
        raise ValueError("this is not an optimizer's state: 'state' has a dict for each parameter")


def _options(optimizer: HasState, old: Mapping[str, Any], index: int) -> Group:
    """Return the options of a saved group, checked."""
    name = type(optimizer).__name__
    options: Group = {key: value for key, value in _BEYOND_PYTORCH.items() if key in optimizer.defaults}
    for key, value in old.items():
        if key in optimizer.defaults or key in EXTRA_KEYS:
            options[key] = value
        elif key != "params" and key not in _WITHOUT_EFFECT and value and value != _BEYOND_PYTORCH.get(key):
            raise ValueError(f"the saved optimizer has the option {key}={value!r}, which {name} does not have")
    missing = [key for key in optimizer.defaults if key not in options]
    if missing:
        raise ValueError(
            f"group {index} of the saved optimizer lacks {', '.join(missing)}: it was saved by another optimizer than "
            f"{name}"
        )
    optimizer.check_group(options)
    return options


def _state(
    optimizer: HasState, parameter: Tensor, group: Group, number: Any, values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the checked state of one parameter, as arrays of its device, and of its dtype or float32 with a master.

    A state without the master that this parameter has, such as PyTorch's, gets a new one; one that it does not have,
    since it is float32 here, is left out.
    """
    data, given = parameter.data, {name: value for name, value in values.items() if value is not None}
    saved_master = given.pop(MASTER, None)
    if is_sixteen_bit(data.dtype):
        data = master_of(data, {})
        given[MASTER] = data if saved_master is None else saved_master
    missing = optimizer.new_state(data, group).keys() - given.keys()
    if missing:
        raise ValueError(
            f"the saved state of parameter {number} lacks {', '.join(sorted(missing))}, which "
            f"{type(optimizer).__name__} needs: it was saved by another optimizer, or with other options"
        )
    state: dict[str, Any] = {}
    for name, value in given.items():
        if name == "step":
            step = np.asarray(value)
            if step.size != 1 or step.dtype.kind not in "iuf":
                raise ValueError(f"the saved step of parameter {number} is {value!r}, not a number of updates")
            state[name] = int(step.item())
            continue
        if np.shape(value) != data.shape:
            raise ValueError(
                f"the saved {name} of parameter {number} has shape {np.shape(value)}, the parameter {data.shape}"
            )
        state[name] = array_module(data).asarray(np.array(value, dtype=data.dtype, order="C"))
    return state


def _saved(value: Any) -> Any:
    return np.array(value, dtype=np.float32) if isinstance(value, int) else to_numpy(value).copy()
