"""Elements selected by index along an axis, to read (`gather`, `index_select`), to add to, or to replace."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl import kernels
from minidl.functional.axes import counted_from_start, places
from minidl.functional.bind import operand, tensor_method
from minidl.functional.shapes import getitem, where
from minidl.kernels import Array, array_module, new_array_module
from minidl.kernels.sixteen_bit import is_floating_point
from minidl.tensor import Tensor, record

FEW = 64  # numbers that are summed in their own type


@tensor_method("gather")
def gather(a: Any, dim: int, index: Any) -> Tensor:
    """The elements of a with the given indices along `dim`: for dim = 1, out[i, j] = a[i, index[i, j]].

    index: integers, with as many axes as a, and at most as long as a along the axes other than `dim`.
    `p.gather(1, labels.reshape(-1, 1))` is the probability of each row's label.

    >>> gather([[1.0, 2.0], [3.0, 4.0]], 1, np.array([[1], [0]]))
    Tensor([[2.],
            [3.]], float32)
    """
    a, index = operand(a), _indices(index)
    axis = counted_from_start("gather", dim, a.data)
    _check_index("gather", index.data, a.data, axis)
    return elements(a, axis, index)


def elements(a: Tensor, axis: int, index: Tensor, are_distinct: bool = False) -> Tensor:
    """`gather` of an index that fits; are_distinct: it names no element twice."""
    x, shape = a.data, a.shape
    flat, most = places(index.data, axis, shape), index.shape[axis] if index.ndim else 1

    def vjp(g: Array, needs: Any) -> tuple[Array, None]:
        gradient = array_module(g).zeros(shape, g.dtype)
        if are_distinct:
            gradient.reshape(-1)[flat] = g
            return gradient, None
        return _added(gradient, flat, g, most), None

    return record(x.take(flat), (a, index), vjp, saved=(1,))


@tensor_method("scatter_add")
def scatter_add(a: Any, dim: int, index: Any, source: Any) -> Tensor:
    """a with every element of source added at its index along `dim`: for dim = 0, out[index[i, j], j] += source[i, j].

    >>> scatter_add(np.zeros(3), 0, np.array([2, 0, 2]), [1.0, 2.0, 3.0])
    Tensor([2., 0., 4.], float64)
    """
    a, index, source = operand(a), _indices(index), operand(source, a)
    x, axis = a.data, counted_from_start("scatter_add", dim, a.data)
    _check_index("scatter_add", index.data, x, axis)
    if source.shape != index.shape:
        raise ValueError(f"scatter_add: source and index of one shape expected, got {source.shape} and {index.shape}")
    flat, own = places(index.data, axis, x.shape), source.dtype
    out = _added(array_module(x).zeros(x.shape, x.dtype), flat, source.data, index.shape[axis] if index.ndim else 1)
    out += x
    return record(
        out,
        (a, index, source),
        lambda g, needs: (g, None, needs[2] and g.take(flat).astype(own, copy=False)),
        saved=(1,),
    )


@tensor_method("index_select")
def index_select(a: Any, dim: int, index: Any) -> Tensor:
    """The slices of a with the given indices along `dim`: for dim = 1, a[:, index].

    >>> index_select([[1.0, 2.0, 3.0]], 1, np.array([2, 0]))
    Tensor([[3., 1.]], float32)
    """
    a, index = operand(a), _indices(index)
    axis = counted_from_start("index_select", dim, a.data)
    _check_row_indices("index_select", index.data, a.data, axis)
    return getitem(a, (*[slice(None)] * axis, index))


@tensor_method("index_add")
def index_add(a: Any, dim: int, index: Any, source: Any, alpha: float = 1) -> Tensor:
    """a with alpha * source added to the slices at index along `dim`: for dim = 0, out[index[i]] += alpha * source[i].

    >>> index_add(np.zeros((2, 2)), 0, np.array([1, 1]), np.ones((2, 2)))
    Tensor([[0., 0.],
            [2., 2.]], float64)
    """
    a, index, source = operand(a), _indices(index), operand(source, a)
    x, axis = a.data, counted_from_start("index_add", dim, a.data)
    _check_row_indices("index_add", index.data, x, axis)
    expected = (*x.shape[:axis], index.size, *x.shape[axis + 1 :])
    if source.shape != expected:
        raise ValueError(f"index_add: a source of shape {expected} expected, got {source.shape}")
    slices = source.data.astype(x.dtype, copy=False)
    slices = slices.reshape(math.prod(x.shape[:axis]), index.size, math.prod(x.shape[axis + 1 :]))
    out = kernels.current().index_add(slices, index.data, x.shape[axis]).reshape(x.shape)
    if alpha != 1:
        out *= alpha
    out += x
    places, own = index.data, source.dtype
    return record(
        out,
        (a, index, source),
        lambda g, needs: (
            g,
            None,
            needs[2] and (g.take(places, axis=axis) * alpha).astype(own, copy=False),
        ),
        saved=(1,),
    )


@tensor_method("masked_fill")
def masked_fill(a: Any, mask: Any, value: Any) -> Tensor:
    """a with `value` where the mask is True; no gradient passes there.

    >>> masked_fill([1.0, 2.0], [False, True], -np.inf)
    Tensor([  1., -inf], float32)
    """
    mask, a = operand(mask), operand(a)
    if mask.dtype.kind != "b":
        raise TypeError(f"masked_fill: a mask of booleans is needed, such as x == 0, not {mask.dtype}")
    return where(mask, value, a)


def one_hot(labels: Any, num_classes: int = -1) -> Tensor:
    """A row of zeros for each label, with 1 at index label.

    num_classes: length of a row; -1: the largest label + 1.

    >>> one_hot(np.array([2, 0]))
    Tensor([[0, 0, 1],
            [1, 0, 0]], int64)
    """
    labels = _indices(labels)
    y = labels.data
    module = array_module(y)
    classes = (int(y.max()) + 1 if y.size else 0) if num_classes == -1 else num_classes
    if y.size and not (int(y.min()) >= 0 and int(y.max()) < classes):
        raise IndexError(f"one_hot: labels must lie in 0 <= label < {classes}, found {int(y.min())} to {int(y.max())}")
    return record((module.expand_dims(y, -1) == module.arange(classes)).astype(np.int64), (labels,), None)


def _added(zeros: Array, flat: Array, values: Array, most: int) -> Array:
    """Zeros with values added at flat indices, of which at most `most` are equal.

    Sums of many floating-point numbers, and of those of 16 bits, are kept in float64.
    """
    is_wide = is_floating_point(zeros.dtype) and (most > FEW or zeros.itemsize == 2)
    sums = zeros.astype("float64") if is_wide else zeros
    array_module(zeros).add.at(sums.reshape(-1), flat.reshape(-1), values.reshape(-1).astype(sums.dtype, copy=False))
    return sums.astype(zeros.dtype, copy=False)


def _indices(index: Any) -> Tensor:
    index = index if isinstance(index, Tensor) else Tensor(new_array_module().asarray(index))
    if index.dtype.kind not in "iu" and index.size:
        raise TypeError(f"an index holds integers, not {index.dtype}: make it of an integer array, or use .long()")
    return index if index.size else Tensor(index.data.astype(np.int64))


def _check_index(operation: str, index: Array, x: Array, axis: int) -> None:
    if index.ndim != x.ndim or any(
        mine > other for i, (mine, other) in enumerate(zip(index.shape, x.shape, strict=True)) if i != axis
    ):
        raise ValueError(
            f"{operation}: an index with as many axes as the tensor, {x.shape}, and no longer except along axis "
            f"{axis}, expected, got {index.shape}"
        )
    _check_range(operation, index, x.shape[axis] if x.ndim else 1, axis)


def _check_row_indices(operation: str, index: Array, x: Array, axis: int) -> None:
    if index.ndim != 1 or not x.ndim:
        raise ValueError(
            f"{operation}: a vector of indices into a tensor with axes expected, got shapes {index.shape} and {x.shape}"
        )
    _check_range(operation, index, x.shape[axis], axis)


def _check_range(operation: str, index: Array, length: int, axis: int) -> None:
    if index.size and not (int(index.min()) >= 0 and int(index.max()) < length):
        raise IndexError(
            f"{operation}: indices must lie in 0 <= i < {length}, the length of axis {axis}, found "
            f"{int(index.min())} to {int(index.max())}"
        )
