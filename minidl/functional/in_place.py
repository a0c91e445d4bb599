"""Writing into a tensor: `w -= lr * w.grad` and `x[0] = 5.0`, which the tape cannot see.

>>> from minidl import Tensor, no_grad
>>> w = Tensor([1.0, 2.0], requires_grad=True)
>>> (w * w).sum().backward()
>>> with no_grad():
...     w -= 0.25 * w.grad  # into w's own memory; a backward that still needs the old values raises
>>> w
Tensor([0.5, 1. ], float32, requires_grad=True)

Outside of `no_grad()`, a leaf that requires a gradient cannot be written into, as in PyTorch: its gradient would belong
to another value. For a tensor made by recorded operations, `h += x` is `h = h + x`: a new tensor, on the tape.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from minidl.functional.bind import operand, tensor_method
from minidl.functional.elementwise import add, divided, mul, sub
from minidl.functional.shape_errors import can_broadcast, cannot_write
from minidl.functional.shapes import cannot_index, plain_index
from minidl.grad_mode import grad_enabled
from minidl.kernels import counting
from minidl.kernels.sixteen_bit import is_floating_point
from minidl.tensor import Tensor


def _update(
    symbol: str, operation: Callable[[Any, Any], Tensor], write: Callable[[Any, Any], Any]
) -> Callable[..., Tensor]:
    def update(a: Tensor, b: Any) -> Tensor:
        b = operand(b, a)
        if grad_enabled.get() and (a.requires_grad or b.requires_grad):
            if a.requires_grad and a._node is None:
                raise _leaf_in_use(a)
            return operation(a, b)
        return _written(symbol, a, b, write)

    return update


def _written(name: str, a: Tensor, b: Tensor, write: Callable[[Any, Any], Any]) -> Tensor:
    try:
        write(a.data, b.data)
    except ValueError as error:
        if can_broadcast(a.data, b.data, to=a.shape):
            raise  # a read-only array
        raise cannot_write(name, b.shape, a.shape) from error
    except TypeError as error:
        raise TypeError(
            f"{name}: the result of {a.dtype} and {b.dtype} does not fit into the tensor's {a.dtype}: make a new "
            "tensor, as x = x + y does, or convert the tensor with .float() first"
        ) from error
    a.increment_version()
    counter = counting.active.get()
    if counter is not None:
        counter.elementwise((a.data, b.data), a.data)
    return a


def _leaf_in_use(a: Tensor) -> RuntimeError:
    return RuntimeError(
        f"a leaf of shape {a.shape} that requires a gradient cannot be changed in place while operations are recorded: "
        "do it within `with no_grad():`"
    )


for name, symbol, operation, write in (
    ("__iadd__", "+=", add, operator.iadd),
    ("__isub__", "-=", sub, operator.isub),
    ("__imul__", "*=", mul, operator.imul),
    ("__itruediv__", "/=", divided, operator.itruediv),
):
    tensor_method(name)(_update(symbol, operation, write))


@tensor_method("__setitem__")
def _set_items(a: Tensor, index: Any, value: Any) -> None:
    value = operand(value, a)
    if grad_enabled.get() and (a.requires_grad or value.requires_grad):
        raise RuntimeError(
            "items of a tensor cannot be assigned where a gradient is required, since the tape would not see it: do it "
            "within `with no_grad():`, or build a new tensor with where() or cat()"
        )
    place = plain_index(index)
    try:
        a.data[place] = value.data
    except IndexError as error:
        raise cannot_index(a.data, place, error) from error
    except ValueError as error:
        elements = a.data[place]
        if can_broadcast(elements, value.data, to=elements.shape):
            raise  # a read-only array
        raise cannot_write("x[...] = y", value.shape, elements.shape) from error
    a.increment_version()


# ---- methods whose names end in _ ----


@tensor_method("add_")
def _add_(a: Tensor, other: Any, alpha: float = 1) -> Tensor:
    """a += alpha * other."""
    return _by_name("add_", a, operand(other, a) if alpha == 1 else mul(operand(other, a), alpha), operator.iadd)


@tensor_method("sub_")
def _sub_(a: Tensor, other: Any, alpha: float = 1) -> Tensor:
    """a -= alpha * other."""
    return _by_name("sub_", a, operand(other, a) if alpha == 1 else mul(operand(other, a), alpha), operator.isub)


@tensor_method("mul_")
def _mul_(a: Tensor, other: Any) -> Tensor:
    """a *= other."""
    return _by_name("mul_", a, operand(other, a), operator.imul)


@tensor_method("div_")
def _div_(a: Tensor, other: Any) -> Tensor:
    """a /= other."""
    return _by_name("div_", a, operand(other, a), operator.itruediv)


@tensor_method("fill_")
def _fill_(a: Tensor, value: float) -> Tensor:
    """Every number of a becomes `value`."""
    return _by_name("fill_", a, operand(value, a), lambda array, number: array.__setitem__(..., number))


@tensor_method("zero_")
def _zero_(a: Tensor) -> Tensor:
    """Every number of a becomes 0."""
    return _fill_(a, 0)


def _by_name(name: str, a: Tensor, b: Tensor, write: Callable[[Any, Any], Any]) -> Tensor:
    """Write in place, and refuse where the operation would have to be recorded: the caller may ignore the result."""
    if grad_enabled.get() and (a.requires_grad or b.requires_grad):
        if a.requires_grad and a._node is None:
            raise _leaf_in_use(a)
        raise RuntimeError(
            f"{name} changes a tensor in place, which the tape does not record, and a gradient is required here: write "
            "h = h + x, or do it within `with no_grad():`"
        )
    return _written(name, a, b, write)


@tensor_method("requires_grad_")
def _requires_grad_(a: Tensor, requires_grad: bool = True) -> Tensor:
    """From here on, operations on this leaf are recorded (or, with False, no longer); returns the tensor."""
    if a._node is not None:
        raise RuntimeError(
            "requires_grad_ is for leaves, and this tensor was made by a recorded operation: call .detach() first"
        )
    if requires_grad and not is_floating_point(a.dtype):
        raise TypeError(f"only floating-point tensors can require gradients, this one is {a.dtype}: use .float() first")
    a.requires_grad = requires_grad
    return a
