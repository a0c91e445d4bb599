"""Softmax and its logarithm: scores become probabilities."""

from __future__ import annotations

from typing import Any

from minidl import kernels
from minidl.functional.axes import check_axes
from minidl.functional.bind import operand, tensor_method
from minidl.tape import OUTPUT
from minidl.tensor import Tensor, record


@tensor_method("softmax")
def softmax(x: Any, axis: int = -1, *, dim: int | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `axis`, computed after subtracting the maximum so that nothing overflows.

    >>> softmax([0.0, 0.0, 1000.0])
    Tensor([0., 0., 1.], float32)
    """
    axis = axis if dim is None else dim
    x = operand(x)
    try:
        out = kernels.current().softmax(x.data, axis)
    except (IndexError, TypeError, ValueError):
        check_axes("softmax", axis, x.data)
        raise
    return record(out, (x,), lambda g, needs: (kernels.current().softmax_backward(g, out, axis),), saved=(OUTPUT,))


@tensor_method("log_softmax")
def log_softmax(x: Any, axis: int = -1, *, dim: int | None = None) -> Tensor:
    """log(softmax(x)) along `axis`, without the underflow of taking the logarithm afterwards.

    >>> log_softmax([0.0, 1000.0])
    Tensor([-1000.,     0.], float32)
    """
    axis = axis if dim is None else dim
    x = operand(x)
    try:
        out = kernels.current().log_softmax(x.data, axis)
    except (IndexError, TypeError, ValueError):
        check_axes("log_softmax", axis, x.data)
        raise
    return record(out, (x,), lambda g, needs: (kernels.current().log_softmax_backward(g, out, axis),), saved=(OUTPUT,))
