"""How an operation becomes an operator of Tensor, and how its operands become tensors of one shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from minidl import kernels
from minidl.kernels import Array, array_module
from minidl.kernels.sixteen_bit import cast, is_floating_point
from minidl.tensor import Tensor, record

_F = TypeVar("_F", bound=Callable[..., Any])


def tensor_method(*names: str) -> Callable[[_F], _F]:
    """Make the decorated operation also a method or operator of Tensor: `@tensor_method("__add__")` gives `a + b`."""

    def bind(operation: _F) -> _F:
        for name in names:
            setattr(Tensor, name, operation)
        return operation

    return bind


def operand(value: Any, beside: Any = None) -> Tensor:
    """`value` as a Tensor; a number, Python's or numpy's, takes the type of the tensor `beside` it, as in PyTorch."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (int, float, np.integer, np.floating)) and isinstance(beside, Tensor):
        dtype = beside._data.dtype
        if is_floating_point(dtype) or (dtype.kind in "iu" and isinstance(value, (int, np.integer))):
            return record(array_module(beside._data).asarray(value, dtype=dtype), (), None)
    return Tensor(value)


def unbroadcast(g: Array, operand: Array) -> Array:
    """Sum g, the gradient of a broadcast operation, over the axes along which `operand` was repeated; to its dtype."""
    if g.shape != operand.shape:
        extra = g.ndim - operand.ndim
        repeated = tuple(range(extra))
        if g.shape[extra:] != operand.shape:
            lengths = zip(operand.shape, g.shape[extra:], strict=True)
            repeated += tuple(extra + i for i, (own, length) in enumerate(lengths) if own == 1 != length)
        g = kernels.uncounted("sum")(g, repeated, True).reshape(operand.shape)
    return g if g.dtype == operand.dtype else cast(g, operand.dtype)


def along(g: Array, axis: int | tuple[int, ...] | None, ndim: int) -> Array:
    """Put back the axes that a reduction removed, with length 1."""
    if axis is None:
        return g.reshape((1,) * ndim)
    axes = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(a % ndim for a in axes) if ndim else ()
    kept = iter(g.shape)
    return g.reshape(tuple(1 if a in axes else next(kept) for a in range(ndim)))
