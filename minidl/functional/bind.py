"""What operations share: binding them to Tensor, making operands tensors, and summing gradients after broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from minidl import kernels
from minidl.kernels import Array, array_module
from minidl.kernels.sixteen_bit import cast, is_floating_point
from minidl.tensor import Tensor, record

_F = TypeVar("_F", bound=Callable[..., Any])


def tensor_method(*names: str) -> Callable[[_F], _F]:
    """Make the decorated operation also a method or operator of Tensor: `@tensor_method("__add__")` gives `a + b`."""

    def bind(operation: _F) -> _F:
        for name in names:
            setattr(Tensor, name, operation)
        return operation

    return bind


def operand(value: Any, other: Any = None) -> Tensor:
    """`value` as a Tensor; a single number takes the type of `other`, the other operand, as in PyTorch.

    A number is Python's, numpy's, or a 0-d tensor: `x / mask.sum()` keeps the type of x.
    Errors: OverflowError for an integer that the type of `other` does not hold.
    """
    if isinstance(value, Tensor):
        return value if value._data.shape or other is None else _in_type_of(value, other)
    if isinstance(value, (int, float, np.integer, np.floating)) and isinstance(other, Tensor):
        dtype = other._data.dtype
        is_integer = not is_floating_point(dtype)
        if not is_integer or (dtype.kind in "iu" and isinstance(value, (int, np.integer))):
            number = int(value) if is_integer else value  # numpy's integers would wrap around
            try:
                return record(array_module(other._data).asarray(number, dtype=dtype), (), None)
            except OverflowError as error:
                raise does_not_fit(number, dtype) from error
    made = Tensor(value)
    return made if made._data.shape or other is None else _in_type_of(made, other)


def _in_type_of(number: Tensor, other: Any) -> Tensor:
    """A 0-d tensor, converted to the type of the other operand if that type can hold it; differentiable."""
    array = other._data if isinstance(other, Tensor) else other
    own, dtype = number._data.dtype, getattr(array, "dtype", None)
    if dtype is None or dtype == own or not array.shape:
        return number
    if is_floating_point(dtype):
        data = cast(number._data, dtype)
    elif own.kind in "iu" and dtype.kind in "iu":
        data = number._data.astype(dtype)
        if not np.can_cast(own, dtype) and int(data) != int(number._data):
            raise does_not_fit(int(number._data), dtype)
    else:
        return number
    if not is_floating_point(own):
        return record(data, (), None)
    return record(data, (number,), lambda g, needs: (cast(g, own),))


def does_not_fit(number: Any, dtype: Any) -> OverflowError:
    """The error for an integer operand that the type of the other operand does not hold."""
    shown = str(number) if number.bit_length() <= 64 else f"an integer of {number.bit_length()} bits"
    if is_floating_point(dtype):
        return OverflowError(f"{shown} is beyond the numbers of {dtype}: write float('inf')")
    limits = np.iinfo(dtype)
    wider = "int64" if -(2**63) <= number < 2**63 else "float64"
    return OverflowError(
        f"{shown} does not fit into {dtype}, the type of the other operand, which holds {limits.min} to "
        f"{limits.max}: convert the tensor with .to('{wider}')"
    )


def unbroadcast(g: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """Sum g over the axes along which an operand of that shape was broadcast, and convert it to the operand's type."""
    if g.shape != shape:
        extra = g.ndim - len(shape)
        repeated = tuple(range(extra))
        if g.shape[extra:] != shape:
            lengths = zip(shape, g.shape[extra:], strict=True)
            repeated += tuple(extra + i for i, (own, length) in enumerate(lengths) if own == 1 != length)
        g = kernels.uncounted("sum")(g, repeated, True).reshape(shape)
    return g if g.dtype is dtype or g.dtype == dtype else cast(g, dtype)


def along(g: Array, axis: int | tuple[int, ...] | None, ndim: int) -> Array:
    """Put back the axes that a reduction removed, with length 1."""
    if axis is None:
        return g.reshape((1,) * ndim)
    axes = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(a % ndim for a in axes) if ndim else ()
    kept = iter(g.shape)
    return g.reshape(tuple(1 if a in axes else next(kept) for a in range(ndim)))
