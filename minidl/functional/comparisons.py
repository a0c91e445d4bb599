"""Comparisons (`x > 0`, `x == y`), `~ & | ^`, and logic on truth values: tensors of booleans; no gradient passes.

>>> from minidl import Tensor
>>> x, y = Tensor([-1.0, 2.0]), Tensor([3.0, 2.0])
>>> x > 0, x == y
(Tensor([False,  True], bool), Tensor([False,  True], bool))
>>> (x > 0) & ~(x > 2), ((x > 3) | (x < 0)).any()
(Tensor([False,  True], bool), Tensor(True, bool))
>>> logical_not([1, 0, -2.5])  # whatever the type, nonzero is true
Tensor([False,  True, False], bool)

`a is b` tells whether two names mean the same tensor. As keys of a dict, tensors are compared by identity. `and`, `or`
and `not` need one truth value, and are refused for a tensor of several elements.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from minidl.functional.axes import check_axes, one_spelling
from minidl.functional.bind import does_not_fit, operand, tensor_method
from minidl.functional.rules import named
from minidl.functional.shape_errors import cannot_broadcast
from minidl.kernels import Array, array_module
from minidl.kernels.sixteen_bit import cast, is_floating_point, is_sixteen_bit
from minidl.tensor import Tensor, record
from minidl.tensor.methods import Axis


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


def _comparison(name: str, symbol: str, compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Tensor]:
    def operation(a: Any, b: Any) -> Tensor:
        return _elementwise(symbol, compare, a, b)

    return named(operation, name, f"a {symbol} b, elementwise.", __name__)


lt = _comparison("lt", "<", operator.lt)
le = _comparison("le", "<=", operator.le)
gt = _comparison("gt", ">", operator.gt)
ge = _comparison("ge", ">=", operator.ge)
ne = _comparison("ne", "!=", operator.ne)
for comparison in (lt, le, gt, ge):
    tensor_method(f"__{comparison.__name__}__", comparison.__name__)(comparison)
tensor_method("ne")(ne)


@tensor_method("eq")
def eq(a: Any, b: Any) -> Tensor:
    """a == b, elementwise; nan equals nothing.

    >>> (eq([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])).float().mean()  # the accuracy of predictions
    Tensor(0.6667, float32)
    """
    return _elementwise("==", operator.eq, a, b)


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


# ---- on booleans and on the bits of integers ----


def _bitwise(symbol: str, combine: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Tensor]:
    def operation(a: Any, b: Any) -> Tensor:
        x, y = (value if isinstance(value, int) else operand(value).data for value in (a, b))
        for value in (x, y):
            if not isinstance(value, int) and is_floating_point(value.dtype):
                raise TypeError(
                    f"{symbol} combines booleans or integers, not {value.dtype}: compare first, "
                    f"(x > 0) {symbol} (y > 0)"
                )
        try:
            return record(combine(x, y), (), None)
        except ValueError as error:
            raise cannot_broadcast(symbol, x, y) from error
        except OverflowError as error:
            number, tensor = (x, b) if isinstance(x, int) else (y, a)
            raise does_not_fit(number, operand(tensor).dtype) from error

    return operation


tensor_method("__and__", "__rand__")(_bitwise("&", operator.and_))
tensor_method("__or__", "__ror__")(_bitwise("|", operator.or_))
tensor_method("__xor__", "__rxor__")(_bitwise("^", operator.xor))


@tensor_method("__invert__")
def _invert(a: Tensor) -> Tensor:
    if is_floating_point(a.dtype):
        raise TypeError(f"~ inverts booleans or integers, not {a.dtype}: compare first, ~(x > 0)")
    return record(~a.data, (), None)


# ---- on truth values ----


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
    return _over_axes("any", a, *one_spelling("any", axis, keepdims, dim, keepdim))


@tensor_method("all")
def all_(
    a: Any, dim: Axis = None, keepdim: bool | None = None, *, axis: Axis = None, keepdims: bool | None = None
) -> Tensor:
    """Whether all elements over `dim` (all axes by default) are True or nonzero; True for no elements."""
    return _over_axes("all", a, *one_spelling("all", axis, keepdims, dim, keepdim))


def _over_axes(name: str, a: Any, axis: Axis, keepdims: bool) -> Tensor:
    holds = operand(a).data != 0
    try:
        return record(getattr(holds, name)(axis=axis, keepdims=keepdims), (), None)
    except (IndexError, TypeError, ValueError):
        check_axes(name, axis, holds)
        raise
