"""Sum, product, matrix product: one line and one vector-Jacobian product each.

g is the gradient of the loss with respect to the result. Operands are broadcast as in numpy; their gradients are summed
back to their shapes (`unbroadcast`).
"""

from __future__ import annotations

from typing import Any

from minidl import kernels
from minidl.functional.bind import operand, tensor_method, unbroadcast
from minidl.functional.one_type import autocast_dtype, in_one_type
from minidl.functional.shape_errors import cannot_broadcast, cannot_multiply
from minidl.kernels import Array, array_module
from minidl.tensor import Tensor, record

FIRST, SECOND = 0, 1  # in `saved`: the parents whose values the vjp reads


@tensor_method("__add__", "__radd__", "add")
def add(a: Any, b: Any) -> Tensor:
    """a + b, elementwise.

    >>> add([[1.0], [2.0]], [10.0, 20.0])  # broadcast as in numpy
    Tensor([[11., 21.],
            [12., 22.]], float32)
    """
    a, b = operand(a, b), operand(b, a)
    x, y = a.data, b.data
    try:
        out = x + y
    except ValueError as error:
        raise cannot_broadcast("+", x, y) from error
    return record(out, (a, b), lambda g, needs: (needs[0] and unbroadcast(g, x), needs[1] and unbroadcast(g, y)))


@tensor_method("__sub__", "sub")
def sub(a: Any, b: Any) -> Tensor:
    """a - b, elementwise."""
    a, b = operand(a, b), operand(b, a)
    x, y = a.data, b.data
    try:
        out = x - y
    except ValueError as error:
        raise cannot_broadcast("-", x, y) from error
    return record(out, (a, b), lambda g, needs: (needs[0] and unbroadcast(g, x), needs[1] and unbroadcast(-g, y)))


@tensor_method("__mul__", "__rmul__", "mul")
def mul(a: Any, b: Any) -> Tensor:
    """a * b, elementwise."""
    a, b = operand(a, b), operand(b, a)
    x, y = a.data, b.data
    try:
        out = x * y
    except ValueError as error:
        raise cannot_broadcast("*", x, y) from error
    return record(
        out,
        (a, b),
        lambda g, needs: (needs[0] and unbroadcast(g * y, x), needs[1] and unbroadcast(g * x, y)),
        saved=(FIRST, SECOND),
    )


@tensor_method("__truediv__", "div")
def div(a: Any, b: Any) -> Tensor:
    """a / b, elementwise."""
    a, b = operand(a, b), operand(b, a)
    x, y = a.data, b.data
    try:
        out = x / y
    except ValueError as error:
        raise cannot_broadcast("/", x, y) from error
    return record(
        out,
        (a, b),
        lambda g, needs: (needs[0] and unbroadcast(g / y, x), needs[1] and unbroadcast(-g * (x / y / y), y)),
        saved=(FIRST, SECOND),
    )


@tensor_method("__neg__", "neg")
def neg(a: Any) -> Tensor:
    """-a."""
    a = operand(a)
    return record(-a.data, (a,), lambda g, needs: (-g,))


@tensor_method("abs", "__abs__")
def abs(a: Any) -> Tensor:
    """The absolute value; the derivative at 0 is 0."""
    a = operand(a)
    x = a.data
    return record(array_module(x).abs(x), (a,), lambda g, needs: (g * signs(x),), saved=(FIRST,))


def signs(x: Array) -> Array:
    """1, 0 or -1 as small integers; 0 for not a number, as in PyTorch."""
    return (x > 0).view("int8") - (x < 0).view("int8")


@tensor_method("__matmul__", "matmul", "mm", "bmm")
def matmul(a: Any, b: Any) -> Tensor:
    """a @ b, the matrix product over the last two axes; leading axes are broadcast; vectors as in numpy.

    >>> matmul([[1.0, 2.0]], [[3.0], [4.0]])
    Tensor([[11.]], float32)
    """
    a, b = operand(a), operand(b)
    if a._data.dtype is not b._data.dtype or autocast_dtype.get() is not None:
        a, b = in_one_type("matmul", a, b)
    x, y = a.data, b.data
    try:
        product = kernels.current().matmul(x, y)
    except ValueError as error:
        raise cannot_multiply(x, y) from error

    def vjp(g: Array, needs: Any) -> tuple[Array, Array]:
        matmul = kernels.current().matmul
        if x.ndim == y.ndim == 2:  # nearly always; the general case below takes twice as long on small matrices
            return needs[0] and unbroadcast(matmul(g, y.T), x), needs[1] and unbroadcast(matmul(x.T, g), y)
        rows, columns = (x[None, :] if x.ndim == 1 else x), (y[:, None] if y.ndim == 1 else y)
        g = g.reshape((*g.shape[: product.ndim - (x.ndim > 1) - (y.ndim > 1)], rows.shape[-2], columns.shape[-1]))
        return (
            needs[0] and unbroadcast(matmul(g, columns.swapaxes(-1, -2)), rows).reshape(x.shape),
            needs[1] and unbroadcast(matmul(rows.swapaxes(-1, -2), g), columns).reshape(y.shape),
        )

    return record(product, (a, b), vjp, saved=(FIRST, SECOND))


@tensor_method("__rsub__")
def _subtracted_from(a: Tensor, b: Any) -> Tensor:
    return sub(b, a)


@tensor_method("__rtruediv__")
def _dividing(a: Tensor, b: Any) -> Tensor:
    return div(b, a)


@tensor_method("__rmatmul__")
def _multiplied_from_left(a: Tensor, b: Any) -> Tensor:
    return matmul(b, a)
