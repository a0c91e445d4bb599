"""Maximum and minimum, of one tensor and of two; argmax, argmin and clamp.

>>> from minidl import Tensor
>>> scores = Tensor([[0.1, 0.7, 0.2], [0.5, 0.1, 0.4]])
>>> _, predicted = scores.max(1)
>>> predicted
Tensor([1, 0], int64)

Where `max` and `min` return indices, the gradient goes to the element of that index (the first of ties), as in PyTorch;
where they return values alone, and in `amax` and `amin`, elements that tie share the gradient.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from minidl import kernels
from minidl.functional.axes import check_axes, counted_from_start, one_axis, one_spelling, zeros_in_order
from minidl.functional.bind import along, operand, tensor_method, unbroadcast
from minidl.functional.shape_errors import cannot_broadcast
from minidl.kernels import Array, array_module
from minidl.kernels.sixteen_bit import cast, is_sixteen_bit
from minidl.tape import OUTPUT
from minidl.tensor import Tensor, record
from minidl.tensor.methods import Axis, ValuesAndIndices


@tensor_method("max")
def max_(a: Any, dim: Any = None, keepdim: bool | None = None, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The maximum. `max()` and `max(axis=...)` give values, `max(dim)` values and indices, `max(a, b)` is `maximum`.

    >>> max_([[1.0, 2.0], [4.0, 3.0]], axis=1)
    Tensor([2., 4.], float32)
    >>> max_([[1.0, 2.0], [4.0, 3.0]], 1).indices
    Tensor([1, 0], int64)
    """
    if isinstance(dim, (Tensor, np.ndarray)):
        return maximum(a, dim)
    return _extremum("max", a, dim, keepdim, axis, keepdims)


@tensor_method("min")
def min_(a: Any, dim: Any = None, keepdim: bool | None = None, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """The minimum. `min()` and `min(axis=...)` give values, `min(dim)` values and indices, `min(a, b)` is `minimum`.

    >>> min_([[1.0, 2.0], [4.0, 3.0]], axis=1)
    Tensor([1., 3.], float32)
    """
    if isinstance(dim, (Tensor, np.ndarray)):
        return minimum(a, dim)
    return _extremum("min", a, dim, keepdim, axis, keepdims)


@tensor_method("amax")
def amax(a: Any, dim: Axis = None, keepdim: bool = False, *, axis: Axis = None, keepdims: bool | None = None) -> Tensor:
    """The maximum over `dim` (all axes by default), values alone; elements that tie share the gradient."""
    return _values("max", operand(a), *one_spelling("amax", axis, keepdims, dim, keepdim or None))


@tensor_method("amin")
def amin(a: Any, dim: Axis = None, keepdim: bool = False, *, axis: Axis = None, keepdims: bool | None = None) -> Tensor:
    """The minimum over `dim` (all axes by default), values alone; elements that tie share the gradient."""
    return _values("min", operand(a), *one_spelling("amin", axis, keepdims, dim, keepdim or None))


def _extremum(name: str, a: Any, dim: Any, keepdim: bool | None, axis: Axis, keepdims: bool) -> Any:
    """The kernel `name`, max or min: values, or with `dim` values and indices."""
    if dim is not None or keepdim is not None or isinstance(axis, list):
        axis, keepdims = one_spelling(name, axis, keepdims, dim, keepdim)
        if dim is not None:
            return _with_indices(name, operand(a), axis, keepdims)
    return _values(name, operand(a), axis, keepdims)


def _values(name: str, a: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    x = a.data
    if not x.size:
        _check_not_empty(name, x, axis)
    try:
        out = getattr(kernels.current(), name)(x, axis, keepdims)
    except (IndexError, TypeError, ValueError):
        check_axes(name, axis, x)
        raise

    def vjp(g: Array, needs: Any) -> tuple[Array]:
        extremum = array_module(x).asarray(out)
        if not keepdims:
            g, extremum = along(g, axis, x.ndim), along(extremum, axis, x.ndim)
        if axis is None and (extremum != extremum).any():  # nan counts as the extremum, as in PyTorch
            is_nan = x != x
            return (is_nan * (g / is_nan.sum().astype(x.dtype)),)
        return (kernels.current().extremum_backward(g, x, extremum, axis),)

    return record(out, (a,), vjp, saved=(0, OUTPUT))


def _with_indices(name: str, a: Tensor, dim: Any, keepdim: bool) -> ValuesAndIndices:
    """The maximum or minimum (`name`) along one axis, and the index of the first of ties."""
    if isinstance(dim, (tuple, list)):
        raise TypeError(
            f"{name} over several axes has no one index: type {name}(axis={tuple(dim)}) for the values alone"
        )
    x = a.data
    axis = counted_from_start(name, dim, x)
    if not x.ndim:
        return ValuesAndIndices(a[()], Tensor(array_module(x).zeros((), np.int64)))
    _check_not_empty(name, x, axis)
    found = array_module(x).expand_dims(getattr(x, "arg" + name)(axis=axis), axis)
    indices = Tensor(found if keepdim else found.squeeze(axis=axis))
    place = _mesh(found, axis)
    module, shape, strides, dtype = array_module(x), x.shape, x.strides, x.dtype

    def vjp(g: Array, needs: Any) -> tuple[Array, None]:
        gradient = zeros_in_order(module, shape, strides, dtype)
        gradient[place] = g if keepdim else module.expand_dims(g, axis)
        return gradient, None

    values = x[place]
    values = record(values if keepdim else values.squeeze(axis=axis), (a, indices), vjp, saved=(1,))
    return ValuesAndIndices(values, indices)


def _mesh(index: Array, axis: int) -> tuple[Array, ...]:
    """Indices for each axis, for `x[_mesh(index, axis)]`: `index` along `axis`, an element's own position elsewhere."""
    module = array_module(index)
    own = [
        module.arange(length).reshape((length,) + (1,) * (index.ndim - 1 - place))
        for place, length in enumerate(index.shape)
    ]
    return tuple(index if place == axis else positions for place, positions in enumerate(own))


def _check_not_empty(name: str, x: Array, axis: Any) -> None:
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if not all(x.shape[counted_from_start(name, i, x)] for i in axes if x.ndim):
        raise ValueError(f"{name} of no numbers: the tensor has shape {x.shape}, and axis {axis} is empty")


@tensor_method("argmax")
def argmax(a: Any, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None) -> Tensor:
    """The index of the maximum along `dim`, of the first where several tie; by default in the flattened tensor.

    >>> argmax([[1.0, 5.0], [4.0, 3.0]], dim=1)
    Tensor([1, 0], int64)
    """
    return _position("argmax", operand(a), dim, axis, keepdim)


@tensor_method("argmin")
def argmin(a: Any, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None) -> Tensor:
    """The index of the minimum along `dim`, of the first where several tie; by default in the flattened tensor."""
    return _position("argmin", operand(a), dim, axis, keepdim)


def _position(name: str, a: Tensor, dim: int | None, axis: int | None, keepdim: bool) -> Tensor:
    x = a.data
    if dim is None and axis is None:
        _check_not_empty(name, x, None)
        found = array_module(x).asarray(getattr(x.reshape(-1), name)(axis=0))
        return record(found.reshape((1,) * x.ndim) if keepdim else found, (), None)
    along_axis = counted_from_start(name, one_axis(name, axis, dim), x)
    if not x.ndim:
        return Tensor(array_module(x).zeros((), np.int64))
    _check_not_empty(name, x, along_axis)
    found = getattr(x, name)(axis=along_axis)
    return record(array_module(x).expand_dims(found, along_axis) if keepdim else found, (), None)


@tensor_method("maximum")
def maximum(a: Any, b: Any) -> Tensor:
    """The larger of a and b, elementwise; where they are equal, each gets half of the gradient.

    >>> maximum([1.0, 5.0], [3.0, 2.0])
    Tensor([3., 5.], float32)
    """
    return _of_two("maximum", operator.lt, a, b)


@tensor_method("minimum")
def minimum(a: Any, b: Any) -> Tensor:
    """The smaller of a and b, elementwise; where they are equal, each gets half of the gradient."""
    return _of_two("minimum", operator.gt, a, b)


def _of_two(name: str, loses: Any, a: Any, b: Any) -> Tensor:
    a, b = operand(a, b), operand(b, a)
    x, y = a.data, b.data
    module = array_module(x)

    def vjp(g: Array, needs: Any) -> tuple[Array, Array]:
        half = module.where(x == y, g / 2, g)
        return (
            needs[0] and unbroadcast(module.where(loses(x, y), 0, half), x.shape, x.dtype),
            needs[1] and unbroadcast(module.where(loses(y, x), 0, half), y.shape, y.dtype),
        )

    try:
        out = getattr(module, name)(x, y)
    except ValueError as error:
        raise cannot_broadcast(name, x, y) from error
    return record(out, (a, b), vjp, saved=(0, 1))


@tensor_method("clamp", "clip")
def clamp(a: Any, min: float | None = None, max: float | None = None) -> Tensor:
    """a limited to at least `min` and at most `max` (numbers); the gradient is 0 where a lies outside.

    >>> clamp([-2.0, 0.5, 3.0], 0, 1)
    Tensor([0. , 0.5, 1. ], float32)
    """
    a = operand(a)
    x = a.data
    if min is None and max is None:
        raise TypeError("clamp: give min=, max= or both")
    for bound in (min, max):
        if isinstance(bound, (Tensor, np.ndarray, list)):
            raise TypeError("clamp: min and max are numbers; for bounds that are tensors there are maximum and minimum")
    if min is None:
        out = array_module(x).minimum(x, operand(max, a).data)
    elif max is None:
        out = array_module(x).maximum(x, operand(min, a).data)
    else:
        out = array_module(x).clip(x, operand(min, a).data, operand(max, a).data)
        if is_sixteen_bit(x.dtype):  # numpy's clip gives float32 for bfloat16
            out = cast(out, x.dtype)

    def vjp(g: Array, needs: Any) -> tuple[Array]:
        inside = (x >= x.dtype.type(-np.inf)) if min is None else (x >= min)
        return (array_module(x).where(inside if max is None else inside & (x <= max), g, 0),)

    return record(out, (a,), vjp, saved=(0,))
