"""Sum, mean and maximum over axes, with numpy's arguments."""

from __future__ import annotations

from math import prod
from typing import Any

from minidl import kernels
from minidl.functional.bind import along, operand, tensor_method
from minidl.kernels import Array, array_module
from minidl.tape import OUTPUT
from minidl.tensor import Tensor, record

Axis = int | tuple[int, ...] | None


@tensor_method("sum")
def sum(a: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The sum over `axis` (all axes by default). The gradient is handed to every summand alike.

    >>> sum([[1.0, 2.0], [3.0, 4.0]], axis=0)
    Tensor([4., 6.], float32)
    """
    a = operand(a)
    x = a.data
    return record(kernels.current().sum(x, axis, keepdims), (a,), lambda g, needs: (_spread(g, x, axis, keepdims),))


@tensor_method("mean")
def mean(a: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean over `axis` (all axes by default)."""
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
def max_(a: Any, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The maximum over `axis` (all axes by default). Where several elements tie, they share the gradient evenly.

    >>> max_([[1.0, 2.0], [4.0, 3.0]], axis=1)
    Tensor([2., 4.], float32)
    """
    a = operand(a)
    x = a.data
    out = kernels.current().max(x, axis, keepdims)

    def vjp(g: Array, needs: Any) -> tuple[Array]:
        highest = array_module(x).asarray(out)
        if not keepdims:
            g, highest = along(g, axis, x.ndim), along(highest, axis, x.ndim)
        return (kernels.current().max_backward(g, x, highest, axis),)

    return record(out, (a,), vjp, saved=(0, OUTPUT))
