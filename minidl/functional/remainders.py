"""Rounded division, and its remainder: `i // width` and `i % width` are row and column of a flat index.

>>> from minidl import arange
>>> arange(4) // 2, arange(4) % 2
(Tensor([0, 0, 1, 1], int64), Tensor([0, 1, 0, 1], int64))
"""

from __future__ import annotations

from typing import Any

from minidl import kernels
from minidl.arguments import one_of
from minidl.functional.bind import tensor_method
from minidl.functional.elementwise import div as _divided
from minidl.functional.elementwise import zero
from minidl.functional.rules import binary
from minidl.kernels import Array, array_module
from minidl.kernels.sixteen_bit import is_floating_point
from minidl.tensor import Tensor


def _quotient(x: Array, y: Array) -> Array:
    return kernels.current().floor_divide(x, y) if is_floating_point(x.dtype) else x // y


def _remainder(x: Array, y: Array) -> Array:
    return kernels.current().remainder(x, y) if is_floating_point(x.dtype) else x % y


floor_divide = binary("floor_divide", "//", _quotient, zero, zero, doc="a / b, rounded down; the gradient is 0.")
tensor_method("__floordiv__", "floor_divide")(floor_divide)


def _toward_zero(x: Array, y: Array) -> Array:
    if is_floating_point(x.dtype) or is_floating_point(y.dtype):
        return array_module(x).trunc(x / y)
    down, rest = _quotient(x, y), _remainder(x, y)
    return down + ((rest != 0) & ((x < 0) != (y < 0)))


_truncated_divide = binary("_truncated_divide", "/", _toward_zero, zero, zero, doc="a / b, rounded towards zero.")


@tensor_method("div")
def div(a: Any, b: Any, *, rounding_mode: str | None = None) -> Tensor:
    """a / b, elementwise. rounding_mode: "floor" rounds down, "trunc" towards zero; the gradient is 0 then.

    >>> div([-7.0, 7.0], 2), div([-7.0, 7.0], 2, rounding_mode="trunc")
    (Tensor([-3.5,  3.5], float32), Tensor([-3.,  3.], float32))
    """
    divisions = {None: _divided, "floor": floor_divide, "trunc": _truncated_divide}
    return divisions[one_of("div: rounding_mode", rounding_mode, divisions)](a, b)


remainder = binary(
    "remainder",
    "%",
    _remainder,
    lambda g, x, y: g,
    lambda g, x, y: -g * _quotient(x, y),
    doc="a - b * (a // b), which has b's sign. The gradient of a // b is 0.",
)
tensor_method("__mod__", "remainder")(remainder)


@tensor_method("__rfloordiv__")
def _reversed_floor_divide(a: Tensor, b: Any) -> Tensor:
    return floor_divide(b, a)


@tensor_method("__rmod__")
def _reversed_remainder(a: Tensor, b: Any) -> Tensor:
    return remainder(b, a)
