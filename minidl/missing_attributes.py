"""What a missing attribute of Tensor is answered with: the nearest name, or what takes its place here."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

INSTEAD = {  # PyTorch's names that have no counterpart of the same name
    "grad_fn": "a tensor that an operation made has is_leaf == False",
    "retain_grad": "grad(loss, x) gives the gradient of a tensor that is no leaf",
    "register_hook": "leaves have register_post_accumulate_grad_hook(hook), called with the tensor",
    "data_ptr": "x.data is the array",
    "stride": "x.data.strides are the array's strides, in bytes",
    "type": "x.dtype is the type, x.to(dtype) converts",
    "nonzero": "np.nonzero(x.detach().numpy()) gives the positions",
    "bfloat16": "numpy has no bfloat16; x.half() is float16",
    "ndimension": "x.ndim is the number of axes",
    "nelement": "x.size is how many numbers there are",
    "scatter": "F.where(mask, a, b) chooses, x.scatter_add(dim, index, source) adds",
    "scatter_": "F.where(mask, a, b) chooses, x.scatter_add(dim, index, source) adds",
    "map": "x is an array, not a list: write an expression of x, such as x * 2",
    "append": "F.cat([x, y]) joins tensors",
    "values": "x.numpy() is the array; max(dim=...) gives values and indices",
}


def explain_missing(tensor: Any, name: str) -> AttributeError:
    """The error for `tensor.name`: it says which name was probably meant."""
    kind = type(tensor)
    message = f"{kind.__name__!r} object has no attribute {name!r}"
    if not name.startswith("_"):
        if name in INSTEAD:
            message += f": {INSTEAD[name]}"
        elif near := get_close_matches(name, [each for each in dir(kind) if not each.startswith("_")], 1, 0.7):
            message += f": did you mean {near[0]!r}?"
        elif name.endswith("_") and hasattr(kind, name[:-1]):
            message += f": write x = x.{name[:-1]}(...), or under no_grad x.copy_(x.{name[:-1]}(...))"
    return AttributeError(message, name=name, obj=tensor)
