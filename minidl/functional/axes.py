"""The axes of an operation, in numpy's spelling (`axis=`, `keepdims=`) or in PyTorch's (`dim=`, `keepdim=`)."""

from __future__ import annotations

import operator
from functools import reduce
from types import ModuleType
from typing import Any

from minidl.kernels import Array, array_module


def one_spelling(operation: str, axis: Any, keepdims: Any, dim: Any, keepdim: Any) -> tuple[Any, bool]:
    """Return (axis, keepdims), each given in one of the spellings. Errors: TypeError for one given in both."""
    for numpys, pytorchs, name in (
        (axis, dim, "axis= and dim="),
        (keepdims or None, keepdim, "keepdims= and keepdim="),
    ):
        if numpys is not None and pytorchs is not None:
            raise TypeError(f"{operation}: {name} are two spellings of one argument, give one of them")
    axis = dim if axis is None else axis
    return (tuple(axis) if isinstance(axis, list) else axis), bool(keepdims or keepdim)


def one_axis(operation: str, axis: int | None, dim: int | None, default: int | None = None) -> int:
    """Return the axis, given as `axis=` or as `dim=`; `default` if neither is given."""
    if dim is not None:
        if axis is not None:
            raise TypeError(f"{operation}: axis= and dim= are two spellings of one argument, give one of them")
        return dim
    if axis is not None:
        return axis
    if default is None:
        raise TypeError(f"{operation}: along which axis? Give dim=")
    return default


def counted_from_start(operation: str, axis: Any, x: Array, extra: int = 0) -> int:
    """The axis counted from 0; -1 is the last one. extra: how many axes the operation adds to those of x."""
    try:
        number, ndim = operator.index(axis), x.ndim + extra
    except TypeError:
        raise TypeError(f"{operation}: an axis is a whole number, not {axis!r}") from None
    if not -max(ndim, 1) <= number < max(ndim, 1):
        last = max(ndim, 1) - 1
        raise IndexError(f"{operation}: axis {number} of a tensor of shape {x.shape}, whose axes are 0 to {last}")
    return number % max(ndim, 1)


def check_axes(operation: str, axis: Any, x: Array) -> None:
    """Raise an error for an axis that x does not have, or for a tuple that names one axis twice.

    For `except` clauses: numpy's error names neither the operation nor the shape. Returns if the axes are right.
    """
    if axis is None:
        return
    axes = axis if isinstance(axis, tuple) else (axis,)
    if axes and not x.ndim:
        raise IndexError(f"{operation}: axis {axis} of a tensor of shape (), which has none") from None
    try:
        counted = [counted_from_start(operation, each, x) for each in axes]
    except (IndexError, TypeError) as error:
        raise error from None
    if len(set(counted)) < len(counted):
        raise ValueError(f"{operation}: axes {axis} of a tensor of shape {x.shape} name one axis twice") from None


def zeros_in_order(module: ModuleType, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> Array:
    """Zeros of this shape, with the memory order of axes of an array with these strides.

    The gradient of a slice then has the layout of the whole array, and a transposition before it need not copy.
    """
    order = sorted(range(len(shape)), key=lambda axis: -operator.abs(strides[axis]))
    if order == list(range(len(shape))):
        return module.zeros(shape, dtype)
    back = sorted(range(len(shape)), key=order.__getitem__)
    return module.zeros([shape[axis] for axis in order], dtype).transpose(back)


def places(index: Array, axis: int, shape: tuple[int, ...]) -> Array:
    """Return the flat positions, for `x.take`, of the elements with these indices along `axis` in an array of `shape`.

    Along the other axes an element keeps its own position. (An index for each axis, `x[...]`, takes twice as long.)
    """
    module, step, terms = array_module(index), 1, []
    if not index.ndim:
        return index.astype("int64", copy=False)
    for i in reversed(range(index.ndim)):
        if i == axis:
            own = index.astype("int64", copy=False)
        else:
            own = module.arange(index.shape[i]).reshape((-1,) + (1,) * (index.ndim - 1 - i))
        terms.append(own if step == 1 else own * step)
        step *= shape[i]
    return reduce(operator.add, terms)
