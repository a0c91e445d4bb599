"""Writing into a tensor: `w -= lr * w.grad` and `x[0] = 5.0`, which the tape cannot see.

>>> from minidl import Tensor, no_grad
>>> w = Tensor([1.0, 2.0], requires_grad=True)
>>> (w * w).sum().backward()
>>> with no_grad():
...     w -= 0.25 * w.grad  # into w's own memory; a backward that still needs the old values raises
>>> w
Tensor([0.5, 1. ], float32, requires_grad=True)

On a leaf that requires a gradient they are refused outside `no_grad()`, as in PyTorch: its gradient would be that of
another value. On a tensor that was made by recorded operations, `h += x` is `h = h + x`: a new tensor, on the tape.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from minidl.functional.arithmetic import add, div, mul, sub
from minidl.functional.bind import operand, tensor_method
from minidl.functional.shapes import plain_index
from minidl.kernels import counting
from minidl.tape import grad_enabled
from minidl.tensor import Tensor


def _update(operation: Callable[[Any, Any], Tensor], write: Callable[[Any, Any], Any]) -> Callable[..., Tensor]:
    def update(a: Tensor, b: Any) -> Tensor:
        b = operand(b, a)
        if grad_enabled.get() and (a.requires_grad or b.requires_grad):
            if a.requires_grad and a._vjp is None:
                raise RuntimeError(
                    f"a leaf of shape {a.shape} that requires a gradient cannot be changed in place while operations "
                    "are recorded: do it within `with no_grad():`"
                )
            return operation(a, b)
        write(a.data, b.data)
        a.increment_version()
        counter = counting.active.get()
        if counter is not None:
            counter.elementwise((a.data, b.data), a.data)
        return a

    return update


for name, operation, write in (
    ("__iadd__", add, operator.iadd),
    ("__isub__", sub, operator.isub),
    ("__imul__", mul, operator.imul),
    ("__itruediv__", div, operator.itruediv),
):
    tensor_method(name)(_update(operation, write))


@tensor_method("__setitem__")
def _set_items(a: Tensor, index: Any, value: Any) -> None:
    value = operand(value, a)
    if grad_enabled.get() and (a.requires_grad or value.requires_grad):
        raise RuntimeError(
            "items of a tensor cannot be assigned where a gradient is required, since the tape would not see it: do it "
            "within `with no_grad():`, or build a new tensor with where() or cat()"
        )
    a.data[plain_index(index)] = value.data
    a.increment_version()
