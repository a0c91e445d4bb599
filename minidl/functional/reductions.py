"""Sum, mean and maximum over axes: `axis=`, `keepdims=` as numpy's, or `dim=`, `keepdim=` as PyTorch's."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from minidl import kernels
from minidl.functional.axes import one_spelling
from minidl.functional.bind import along, operand, tensor_method
from minidl.functional.extrema import maximum, share_among_ties, with_indices
from minidl.kernels import Array, array_module
from minidl.tape import OUTPUT
from minidl.tensor import Tensor, record
from minidl.tensor.methods import Axis


@tensor_method("sum")
def sum(a: Any, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None, keepdim: bool | None = None) -> Tensor:
    """The sum over `axis` (all axes by default). The gradient is handed to every summand alike.

    >>> sum([[1.0, 2.0], [3.0, 4.0]], axis=0)
    Tensor([4., 6.], float32)
    """
    if dim is not None or keepdim is not None or isinstance(axis, list):
        axis, keepdims = one_spelling("sum", axis, keepdims, dim, keepdim)
    a = operand(a)
    x = a.data
    return record(kernels.current().sum(x, axis, keepdims), (a,), lambda g, needs: (_spread(g, x, axis, keepdims),))


@tensor_method("mean")
def mean(a: Any, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None, keepdim: bool | None = None) -> Tensor:
    """The mean over `axis` (all axes by default)."""
    if dim is not None or keepdim is not None or isinstance(axis, list):
        axis, keepdims = one_spelling("mean", axis, keepdims, dim, keepdim)
    a = operand(a)
    x = a.data
    out = kernels.current().mean(x, axis, keepdims)
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    count = prod(x.shape[i] for i in axes)
    return record(out, (a,), lambda g, needs: (_spread(g / max(count, 1), x, axis, keepdims),))


def _spread(g: Array, x: Array, axis: Axis, keepdims: bool) -> Array:
    """g at every element of x that was summed into it."""
    return array_module(x).broadcast_to(g if keepdims else along(g, axis, x.ndim), x.shape)


@tensor_method("max")
def max_(a: Any, dim: Any = None, keepdim: bool | None = None, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The maximum. `max()` and `max(axis=...)` give values, `max(dim)` values and indices, `max(a, b)` is `maximum`.

    Of values alone, elements that tie share the gradient evenly; with indices it goes to the first of them.

    >>> max_([[1.0, 2.0], [4.0, 3.0]], axis=1)
    Tensor([2., 4.], float32)
    >>> max_([[1.0, 2.0], [4.0, 3.0]], 1).indices
    Tensor([1, 0], int64)
    """
    if isinstance(dim, (Tensor, np.ndarray)):
        return maximum(a, dim)
    if dim is not None or keepdim is not None:
        axis, keepdims = one_spelling("max", axis, keepdims, dim, keepdim)
        if dim is not None:
            return with_indices("max", operand(a), axis, keepdims)
    a = operand(a)
    x = a.data
    out = kernels.current().max(x, axis, keepdims)

    def vjp(g: Array, needs: Any) -> tuple[Array]:
        return (share_among_ties(g, x, array_module(x).asarray(out), axis, keepdims),)

    return record(out, (a,), vjp, saved=(0, OUTPUT))


@tensor_method("amax")
def amax(a: Any, dim: Axis = None, keepdim: bool = False, *, axis: Axis = None, keepdims: bool | None = None) -> Tensor:
    """The maximum over `dim` (all axes by default), values alone; elements that tie share the gradient."""
    axis, kept = one_spelling("amax", axis, keepdims, dim, keepdim or None)
    return max_(a, axis=axis, keepdims=kept)
