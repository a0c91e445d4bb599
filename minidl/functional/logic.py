"""The operators `~ & | ^` on booleans and on the bits of integers; logic on truth values by name; no gradient passes.

>>> from minidl import Tensor
>>> x = Tensor([1.0, 2.0, 3.0])
>>> (x > 1) & ~(x > 2), ((x > 1) | (x < 0)).any()
(Tensor([False,  True, False], bool), Tensor(True, bool))
>>> logical_not([1, 0, -2.5])  # whatever the type, nonzero is true
Tensor([False,  True, False], bool)

`and`, `or` and `not` need one truth value, and are refused for a tensor of several elements.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from minidl.functional.axes import check_axes, one_spelling
from minidl.functional.bind import does_not_fit, operand, tensor_method
from minidl.functional.shape_errors import cannot_broadcast
from minidl.kernels import Array
from minidl.kernels.sixteen_bit import is_floating_point
from minidl.tensor import Tensor, record
from minidl.tensor.methods import Axis


def _bitwise(symbol: str, combine: Callable[[Any, Any], Any], a: Any, b: Any) -> Tensor:
    x, y = (value if isinstance(value, int) else operand(value).data for value in (a, b))
    for value in (x, y):
        if not isinstance(value, int) and is_floating_point(value.dtype):
            raise TypeError(
                f"{symbol} combines booleans or integers, not {value.dtype}: compare first, (x > 0) {symbol} (y > 0)"
            )
    try:
        return record(combine(x, y), (), None)
    except ValueError as error:
        raise cannot_broadcast(symbol, x, y) from error
    except OverflowError as error:
        number, tensor = (x, b) if isinstance(x, int) else (y, a)
        raise does_not_fit(number, operand(tensor).dtype) from error


@tensor_method("__and__", "__rand__")
def _and(a: Any, b: Any) -> Tensor:
    return _bitwise("&", operator.and_, a, b)


@tensor_method("__or__", "__ror__")
def _or(a: Any, b: Any) -> Tensor:
    return _bitwise("|", operator.or_, a, b)


@tensor_method("__xor__", "__rxor__")
def _xor(a: Any, b: Any) -> Tensor:
    return _bitwise("^", operator.xor, a, b)


@tensor_method("__invert__")
def _invert(a: Tensor) -> Tensor:
    if is_floating_point(a.dtype):
        raise TypeError(f"~ inverts booleans or integers, not {a.dtype}: compare first, ~(x > 0)")
    return record(~a.data, (), None)


def _logical(name: str, combine: Callable[[Array, Array], Array], a: Any, b: Any) -> Tensor:
    x, y = operand(a).data != 0, operand(b).data != 0
    try:
        return record(combine(x, y), (), None)
    except ValueError as error:
        raise cannot_broadcast(name, x, y) from error


@tensor_method("logical_and")
def logical_and(a: Any, b: Any) -> Tensor:
    """Whether both are True or nonzero, elementwise.

    >>> logical_and([0.5, 2.0, 0.0], [1.0, 0.0, 0.0])
    Tensor([ True, False, False], bool)
    """
    return _logical("logical_and", operator.and_, a, b)


@tensor_method("logical_or")
def logical_or(a: Any, b: Any) -> Tensor:
    """Whether one of the two, or both, are True or nonzero, elementwise."""
    return _logical("logical_or", operator.or_, a, b)


@tensor_method("logical_xor")
def logical_xor(a: Any, b: Any) -> Tensor:
    """Whether one of the two, not both, is True or nonzero, elementwise."""
    return _logical("logical_xor", operator.xor, a, b)


@tensor_method("logical_not")
def logical_not(a: Any) -> Tensor:
    """Whether a is False or zero, elementwise."""
    return record(operand(a).data == 0, (), None)


@tensor_method("any")
def any_(
    a: Any, dim: Axis = None, keepdim: bool | None = None, *, axis: Axis = None, keepdims: bool | None = None
) -> Tensor:
    """Whether any element over `dim` (all axes by default) is True or nonzero; False for no elements.

    >>> any_([False, True])
    Tensor(True, bool)
    """
    axis, kept = one_spelling("any", axis, keepdims, dim, keepdim)
    return _over_axes("any", operand(a).data != 0, axis, kept)


@tensor_method("all")
def all_(
    a: Any, dim: Axis = None, keepdim: bool | None = None, *, axis: Axis = None, keepdims: bool | None = None
) -> Tensor:
    """Whether all elements over `dim` (all axes by default) are True or nonzero; True for no elements."""
    axis, kept = one_spelling("all", axis, keepdims, dim, keepdim)
    return _over_axes("all", operand(a).data != 0, axis, kept)


def _over_axes(name: str, holds: Array, axis: Axis, keepdims: bool) -> Tensor:
    try:
        return record(getattr(holds, name)(axis=axis, keepdims=keepdims), (), None)
    except (IndexError, TypeError, ValueError):
        check_axes(name, axis, holds)
        raise
