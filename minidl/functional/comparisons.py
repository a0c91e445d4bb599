"""Comparisons, `x > 0` and `x == y`: elementwise, tensors of booleans for `where` and for indexing; no gradient.

>>> from minidl import Tensor
>>> x, y = Tensor([-1.0, 2.0]), Tensor([3.0, 2.0])
>>> x > 0, x == y
(Tensor([False,  True], bool), Tensor([False,  True], bool))

`a is b` tells whether two names mean the same tensor. As keys of a dict, tensors are compared by identity.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minidl.functional.bind import operand, tensor_method
from minidl.functional.shape_errors import cannot_broadcast
from minidl.kernels import Array, array_module
from minidl.kernels.sixteen_bit import cast, is_floating_point, is_sixteen_bit
from minidl.tensor import Tensor, record


def _elementwise(symbol: str, compare: Callable[[Any, Any], Any], a: Any, b: Any) -> Tensor:
    try:
        x, y = operand(a, b).data, operand(b, a).data
    except OverflowError as error:
        return _with_number_out_of_range(compare, a, b, error)
    try:
        return record(compare(x, y), (), None)
    except ValueError as error:
        raise cannot_broadcast(symbol, x, y) from error


def _with_number_out_of_range(compare: Callable[[Any, Any], Any], a: Any, b: Any, error: OverflowError) -> Tensor:
    """Compare an integer tensor with an integer that its type does not hold: every element gives what 0 gives."""
    b_is_number = not isinstance(a, (int, np.integer)) and not getattr(b, "shape", ())
    x = operand(a if b_is_number else b).data
    if is_floating_point(x.dtype):
        raise error
    answer = compare(0, int(b)) if b_is_number else compare(int(a), 0)
    return record(array_module(x).full(x.shape, answer), (), None)


@tensor_method("__lt__", "lt")
def lt(a: Any, b: Any) -> Tensor:
    """a < b, elementwise."""
    return _elementwise("<", operator.lt, a, b)


@tensor_method("__le__", "le")
def le(a: Any, b: Any) -> Tensor:
    """a <= b, elementwise."""
    return _elementwise("<=", operator.le, a, b)


@tensor_method("__gt__", "gt")
def gt(a: Any, b: Any) -> Tensor:
    """a > b, elementwise."""
    return _elementwise(">", operator.gt, a, b)


@tensor_method("__ge__", "ge")
def ge(a: Any, b: Any) -> Tensor:
    """a >= b, elementwise."""
    return _elementwise(">=", operator.ge, a, b)


@tensor_method("eq")
def eq(a: Any, b: Any) -> Tensor:
    """a == b, elementwise; nan equals nothing.

    >>> (eq([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])).float().mean()  # the accuracy of predictions
    Tensor(0.6667, float32)
    """
    return _elementwise("==", operator.eq, a, b)


@tensor_method("ne")
def ne(a: Any, b: Any) -> Tensor:
    """a != b, elementwise."""
    return _elementwise("!=", operator.ne, a, b)


@tensor_method("isclose")
def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Where |a - b| <= atol + rtol |b|. equal_nan: whether nan is close to nan.

    >>> isclose([1.0, 2.0], [1.000001, 2.1]), isclose(0.1 + 0.2, 0.3).all()
    (Tensor([ True, False], bool), Tensor(True, bool))
    """

    def close(x: Array, y: Array) -> Array:
        x, y = (cast(each, np.dtype(np.float32)) if is_sixteen_bit(each.dtype) else each for each in (x, y))
        return array_module(x).isclose(x, y, rtol, atol, equal_nan)

    try:
        operand(a, b), operand(b, a)
    except OverflowError:  # an integer that the type of the other does not hold
        a, b = (float(each) if isinstance(each, (int, np.integer)) else each for each in (a, b))
    return _elementwise("isclose", close, a, b)


@tensor_method("isnan")
def isnan(a: Any) -> Tensor:
    """Where a is nan."""
    x = operand(a).data
    return record(x != x, (), None)


@tensor_method("__eq__")
def _equal(a: Tensor, b: Any) -> Any:
    return eq(a, b) if _is_numeric(b) else NotImplemented  # x == None, x == "all": False


@tensor_method("__ne__")
def _not_equal(a: Tensor, b: Any) -> Any:
    return ne(a, b) if _is_numeric(b) else NotImplemented


def _is_numeric(value: Any) -> bool:
    return isinstance(value, (Tensor, int, float, np.generic, list, tuple)) or hasattr(value, "dtype")
