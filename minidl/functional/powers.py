"""a ** b, by a number or by a tensor, for any signs."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl import kernels
from minidl.functional.bind import does_not_fit, operand, tensor_method, unbroadcast
from minidl.functional.shape_errors import can_broadcast, cannot_broadcast
from minidl.kernels import Array, array_module
from minidl.kernels.sixteen_bit import is_floating_point
from minidl.tape import OUTPUT
from minidl.tensor import Tensor, record

FIRST, SECOND = 0, 1  # in `saved`: the parents whose values the vjp reads


@tensor_method("__pow__", "pow")
def pow(a: Any, b: Any) -> Tensor:
    """a ** b, elementwise; nan for a negative a and a fractional b.

    The derivatives are b a**(b - 1) with respect to a, and a**b log(a) with respect to b, with PyTorch's conventions:
    the first is 0 where b = 0, since a**0 = 1 everywhere; the second is 0 where a = 0 and b >= 0, and nan where a < 0.

    >>> pow([-2.0, 3.0], 3)
    Tensor([-8., 27.], float32)
    """
    if isinstance(b, (int, float, np.integer, np.floating)):
        return _constant_exponent(operand(a), b.item() if isinstance(b, np.generic) else b)
    a, b = operand(a, b), operand(b, a)
    x, y = a.data, b.data
    try:
        out = _power(x, y)
    except ValueError as error:
        if can_broadcast(x, y):
            raise
        raise cannot_broadcast("**", x, y) from error

    def vjp(g: Array, needs: Any) -> tuple[Array, Array]:
        return (
            needs[0] and unbroadcast(_gradient_of_base(g, x, y), x.shape, x.dtype),
            needs[1] and unbroadcast(_gradient_of_exponent(g, x, y, out), y.shape, y.dtype),
        )

    return record(out, (a, b), vjp, saved=(FIRST, SECOND, OUTPUT))


def _constant_exponent(a: Tensor, b: Any) -> Tensor:
    x = a.data
    if b == 0:
        return record(x**b, (a,), lambda g, needs: (array_module(g).zeros_like(g),))
    try:
        out = _power(x, b)
    except OverflowError as error:
        raise does_not_fit(b, x.dtype) from error
    return record(out, (a,), lambda g, needs: (g * (b * _power(x, b - 1)),), saved=(FIRST,))


def _gradient_of_base(g: Array, x: Array, y: Array) -> Array:
    where = array_module(x).where
    return where(y == 0, 0, g * (y * _power(x, where(y == 0, 1, y - 1))))  # 0 ** -1 would divide by zero


def _gradient_of_exponent(g: Array, x: Array, y: Array, out: Array) -> Array:
    module = array_module(x)
    flat = (x == 0) & (y >= 0)
    return g * module.where(flat, 0, out * module.log(module.where(flat, 1, x)))


@tensor_method("__rpow__")
def _exponent_of(a: Tensor, b: Any) -> Tensor:
    return pow(operand(b, a), a)


def _power(x: Array, y: Any) -> Array:
    return kernels.current().power(x, y) if is_floating_point(x.dtype) else x**y  # whole numbers are not rounded
