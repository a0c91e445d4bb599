"""Hints for attributes that Tensor does not have: what takes the place of PyTorch's, and frequent misspellings.

The hints are descriptors, one for each name: a `__getattr__` would find the nearest name for all of them, but Python
reads every attribute of a class that has one more slowly.
"""

from __future__ import annotations

from typing import Any, NoReturn

INSTEAD = {  # PyTorch's names that have no counterpart of the same name
    "grad_fn": "a tensor that an operation made has is_leaf == False",
    "retain_grad": "grad(loss, x) gives the gradient of a tensor that is no leaf",
    "register_hook": "leaves have register_post_accumulate_grad_hook(hook), called with the tensor",
    "data_ptr": "x.data is the array",
    "stride": "x.data.strides are the array's strides, in bytes",
    "type": "x.dtype is the type, x.to(dtype) converts",
    "nonzero": "np.nonzero(x.detach().numpy()) gives the positions",
    "ndimension": "x.ndim is the number of axes",
    "zero_grad": "x.grad = None forgets the gradient",
    "nelement": "x.size is how many numbers there are",
    "scatter": "F.where(mask, a, b) chooses, x.scatter_add(dim, index, source) adds",
    "scatter_": "F.where(mask, a, b) chooses, x.scatter_add(dim, index, source) adds",
    "unbind": "iteration, `for row in x`, walks along the first axis",
    "map": "x is an array, not a list: write an expression of x, such as x * 2",
    "append": "F.cat([x, y]) joins tensors",
}
MISSPELLED = {
    "backwards": "backward",
    "detatch": "detach",
    "grads": "grad",
    "items": "item",
    "require_grad": "requires_grad",
    "requires_gradient": "requires_grad",
    "reshap": "reshape",
    "shapes": "shape",
    "sofmax": "softmax",
    "squeez": "squeeze",
    "tranpose": "transpose",
    "transpos": "transpose",
    "types": "dtype",
    "unsqeeze": "unsqueeze",
    "unsqueez": "unsqueeze",
}


class Missing:
    """An attribute that is not there, and says what to type."""

    def __init__(self, name: str, hint: str) -> None:
        self._name, self._hint = name, hint

    def __get__(self, tensor: Any, owner: type) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__!r} object has no attribute {self._name!r}: {self._hint}", name=self._name
        )


def add_hints(kind: type) -> None:
    """Put a hint in the place of each attribute that is missing."""
    hints = {**INSTEAD, **{name: f"did you mean {meant!r}?" for name, meant in MISSPELLED.items()}}
    for name, hint in hints.items():
        setattr(kind, name, Missing(name, hint))
