"""Sum, mean and softmax over axes, with numpy's arguments (`axis=`, `keepdims=`) or PyTorch's (`dim=`, `keepdim=`)."""

from __future__ import annotations

from math import prod
from typing import Any

from minidl import kernels
from minidl.functional.axes import check_axes, one_spelling
from minidl.functional.bind import along, operand, tensor_method
from minidl.kernels import Array, array_module
from minidl.tape import OUTPUT
from minidl.tensor import Tensor, record
from minidl.tensor.methods import Axis


@tensor_method("sum")
def sum(a: Any, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None, keepdim: bool | None = None) -> Tensor:
    """The sum over `axis` (all axes by default). Every summand gets the same gradient.

    >>> sum([[1.0, 2.0], [3.0, 4.0]], axis=0)
    Tensor([4., 6.], float32)
    """
    if dim is not None or keepdim is not None or isinstance(axis, list):
        axis, keepdims = one_spelling("sum", axis, keepdims, dim, keepdim)
    a = operand(a)
    x = a.data
    shape = x.shape
    try:
        out = kernels.current().sum(x, axis, keepdims)
    except (IndexError, TypeError, ValueError):
        check_axes("sum", axis, x)
        raise
    return record(out, (a,), lambda g, needs: (_spread(g, shape, axis, keepdims),))


@tensor_method("mean")
def mean(a: Any, axis: Axis = None, keepdims: bool = False, *, dim: Axis = None, keepdim: bool | None = None) -> Tensor:
    """The mean over `axis` (all axes by default)."""
    if dim is not None or keepdim is not None or isinstance(axis, list):
        axis, keepdims = one_spelling("mean", axis, keepdims, dim, keepdim)
    a = operand(a)
    x = a.data
    try:
        out = kernels.current().mean(x, axis, keepdims)
    except (IndexError, TypeError, ValueError):
        check_axes("mean", axis, x)
        raise
    shape = x.shape
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    count = prod(shape[i] for i in axes)
    return record(out, (a,), lambda g, needs: (_spread(g / max(count, 1), shape, axis, keepdims),))


def _spread(g: Array, shape: tuple[int, ...], axis: Axis, keepdims: bool) -> Array:
    """Broadcast g over the axes that were summed: every summand has the same gradient."""
    return array_module(g).broadcast_to(g if keepdims else along(g, axis, len(shape)), shape)


@tensor_method("softmax")
def softmax(x: Any, axis: int = -1, *, dim: int | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `axis`, computed after subtracting the maximum so that nothing overflows.

    >>> softmax([0.0, 0.0, 1000.0])
    Tensor([0., 0., 1.], float32)
    """
    return _normalized("softmax", x, axis if dim is None else dim)


@tensor_method("log_softmax")
def log_softmax(x: Any, axis: int = -1, *, dim: int | None = None) -> Tensor:
    """log(softmax(x)) along `axis`, without the underflow of taking the logarithm afterwards.

    >>> log_softmax([0.0, 1000.0])
    Tensor([-1000.,     0.], float32)
    """
    return _normalized("log_softmax", x, axis if dim is None else dim)


def _normalized(name: str, x: Any, axis: int) -> Tensor:
    x = operand(x)
    try:
        out = getattr(kernels.current(), name)(x.data, axis)
    except (IndexError, TypeError, ValueError):
        check_axes(name, axis, x.data)
        raise
    backward = f"{name}_backward"
    return record(out, (x,), lambda g, needs: (getattr(kernels.current(), backward)(g, out, axis),), saved=(OUTPUT,))
