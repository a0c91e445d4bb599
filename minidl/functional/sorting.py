"""Sorting: sort, argsort and the k largest. The gradient of each number goes to the place that it came from."""

from __future__ import annotations

import operator
from typing import Any

from minidl.functional.axes import counted_from_start, one_axis, places
from minidl.functional.bind import operand, tensor_method
from minidl.functional.selection import elements
from minidl.kernels import Array, array_module
from minidl.kernels.sixteen_bit import cast, is_sixteen_bit
from minidl.tensor import Tensor, record
from minidl.tensor.methods import ValuesAndIndices


@tensor_method("sort")
def sort(a: Any, dim: int | None = None, descending: bool = False, *, axis: int | None = None) -> ValuesAndIndices:
    """The numbers in order along `dim` (the last axis by default), and where they were. nan is the largest.

    Numbers that are equal keep their order.

    >>> sort([3.0, 1.0, 2.0]).values
    Tensor([1., 2., 3.], float32)
    """
    a = operand(a)
    along = one_axis("sort", axis, dim, -1)
    indices = argsort(a, along, descending)
    if not a.ndim:
        return ValuesAndIndices(a[()], indices)
    axis = counted_from_start("sort", along, a.data)
    return ValuesAndIndices(elements(a, axis, indices, are_distinct=True), indices)


@tensor_method("argsort")
def argsort(a: Any, dim: int | None = None, descending: bool = False, *, axis: int | None = None) -> Tensor:
    """The indices that put a in order along `dim` (the last axis by default); equal numbers keep their order.

    >>> argsort([3.0, 1.0, 2.0], descending=True)
    Tensor([0, 2, 1], int64)
    """
    a = operand(a)
    x = _with_nan_last(a.data)
    along = counted_from_start("argsort", one_axis("argsort", axis, dim, -1), x)
    return record(_order(x, along, descending), (), None)


def _with_nan_last(x: Array) -> Array:
    """x; 16 bits in float32, since numpy sorts nan of bfloat16 anywhere."""
    return cast(x, "float32") if is_sixteen_bit(x.dtype) else x


def _order(x: Array, axis: int, descending: bool) -> Array:
    if not x.ndim:
        return array_module(x).zeros((), int)
    if not descending:
        return array_module(x).argsort(x, axis=axis, kind="stable")
    backwards = (*[slice(None)] * axis, slice(None, None, -1))  # reversed before and after, so that ties keep order
    found = array_module(x).argsort(x[backwards], axis=axis, kind="stable")[backwards]
    return x.shape[axis] - 1 - found


@tensor_method("topk")
def topk(
    a: Any, k: int, dim: int | None = None, largest: bool = True, sorted: bool = True, *, axis: int | None = None
) -> ValuesAndIndices:
    """The k largest along `dim` (the last axis by default; the smallest with `largest=False`), and where they are.

    They come in order, whether `sorted` or not; of equal numbers the first are taken.

    >>> topk([3.0, 1.0, 2.0], 2)
    ValuesAndIndices(values=Tensor([3., 2.], float32), indices=Tensor([0, 2], int64))
    """
    a = operand(a)
    x, k = _with_nan_last(a.data), operator.index(k)
    along = counted_from_start("topk", one_axis("topk", axis, dim, -1), x)
    length = x.shape[along] if x.ndim else 1
    if not 0 <= k <= length:
        raise ValueError(f"topk: k must lie in 0 <= k <= {length}, the length of axis {along}, got {k}")
    if not x.ndim:
        return sort(a)
    indices = Tensor(_first(x, k, along, largest))
    return ValuesAndIndices(elements(a, along, indices, are_distinct=True), indices)


def _first(x: Array, k: int, axis: int, largest: bool) -> Array:
    """The indices of the k largest (or smallest) in order; of equal numbers the first."""
    module, first = array_module(x), (*[slice(None)] * axis, slice(k))
    length = x.shape[axis]
    if 0 < k < length // 4:  # a partition takes a fraction of the time of a sort
        last = (*[slice(None)] * axis, slice(length - k, None))
        found = module.argpartition(x, length - k if largest else k - 1, axis=axis)[last if largest else first]
        found = module.sort(found, axis=axis)
        values = x.take(places(found, axis, x.shape))
        weakest = (values.min if largest else values.max)(axis=axis, keepdims=True)
        is_complete = (x == weakest).sum(axis=axis) == (values == weakest).sum(axis=axis)
        if bool(is_complete.all()) and not bool((weakest != weakest).any()):
            return found.take(places(_order(values, axis, largest), axis, found.shape))
        # Otherwise some equal to the last of the k were left out, and the first of them must be taken. With nan among
        # the k, `weakest` is nan, which equals nothing: whether any was left out is unknown.
    return _order(x, axis, largest)[first]
