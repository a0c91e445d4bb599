"""Save and load the parameters and buffers of a module, in PyTorch's layout: a dict from names to arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from minidl.kernels.sixteen_bit import bfloat16_from_void
from minidl.nn.placeholder import is_left_out
from minidl.tensor import Tensor, as_array

LATER = "num_batches_tracked"
"""Batch norm's buffer that states saved before PyTorch 0.4.1 lack; it then keeps its value, as in PyTorch."""


class IncompatibleKeys(NamedTuple):
    """Names that `load_state_dict` did not find in the given state, and names there that the module lacks."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def save_state(named_tensors: Iterable[tuple[str, Tensor]]) -> dict[str, np.ndarray]:
    """Implement `Module.state_dict`."""
    copies: dict[Tensor, np.ndarray] = {}
    state = {}
    for name, tensor in named_tensors:
        if is_left_out(tensor):
            continue
        if tensor not in copies:
            copies[tensor] = tensor.numpy().copy()
        state[name] = copies[tensor]
    return state


def load_state(kind: str, tensors: Mapping[str, Tensor], state_dict: Any, strict: bool) -> IncompatibleKeys:
    """Implement `Module.load_state_dict`: check everything first, then copy into `tensors`."""
    if not hasattr(state_dict, "keys"):
        given = type(state_dict).__name__
        raise TypeError(f"a dict of names and arrays is expected, as state_dict() gives, not a {given}")
    unexpected = [name for name in state_dict if name not in tensors]
    tensors = {name: tensor for name, tensor in tensors.items() if not is_left_out(tensor)}
    missing = [name for name in tensors if name not in state_dict and not name.endswith(LATER)]
    problems = []
    if strict and missing:
        problems.append(f"missing: {', '.join(missing)}")
    if strict and unexpected:
        problems.append(f"unexpected: {', '.join(map(str, unexpected))}")
    arrays = {name: state_dict[name] for name in tensors if name in state_dict}
    for name, value in arrays.items():
        try:
            arrays[name] = bfloat16_from_void(as_array(value))
        except TypeError as error:
            problems.append(f"{name}: {error}")
        else:
            if (shard := getattr(tensors[name], "shard", None)) is not None:
                arrays[name] = shard.taken_from(arrays[name], tensors[name].shape)
            if arrays[name].shape != tensors[name].shape:
                problems.append(f"{name}: has shape {arrays[name].shape}, the model needs {tensors[name].shape}")
    if problems:
        raise ValueError(f"this state does not fit {kind}:\n  " + "\n  ".join(problems))
    for name, array in arrays.items():
        tensors[name].copy_(array)
    return IncompatibleKeys(missing, unexpected)
