"""Over which axes: numpy's spelling (`axis=`, `keepdims=`) and PyTorch's (`dim=`, `keepdim=`) mean the same."""

from __future__ import annotations

import operator
from typing import Any

from minidl.kernels import Array, array_module


def one_spelling(operation: str, axis: Any, keepdims: Any, dim: Any, keepdim: Any) -> tuple[Any, bool]:
    """(axis, keepdims), of which each was given in numpy's spelling or in PyTorch's; both at once are refused."""
    for numpys, pytorchs, name in (
        (axis, dim, "axis= and dim="),
        (keepdims or None, keepdim, "keepdims= and keepdim="),
    ):
        if numpys is not None and pytorchs is not None:
            raise TypeError(f"{operation}: {name} are two spellings of one argument, give one of them")
    axis = dim if axis is None else axis
    return (tuple(axis) if isinstance(axis, list) else axis), bool(keepdims or keepdim)


def one_axis(operation: str, axis: int | None, dim: int | None, default: int | None = None) -> int:
    """The axis, given as `axis=` or as `dim=`."""
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
    """The axis as a number from 0; -1 is the last. extra: how many axes more than x's there may be."""
    number, ndim = operator.index(axis), x.ndim + extra
    if not -max(ndim, 1) <= number < max(ndim, 1):
        raise IndexError(f"{operation}: axis {number} of a tensor of shape {x.shape}, whose axes are 0 to {ndim - 1}")
    return number % max(ndim, 1)


def mesh(index: Array, axis: int) -> tuple[Array, ...]:
    """Indices of all axes, for `x[mesh(index, axis)]`: the element's own position, but `index` along `axis`."""
    module = array_module(index)
    own = [
        module.arange(length).reshape((length,) + (1,) * (index.ndim - 1 - place))
        for place, length in enumerate(index.shape)
    ]
    return tuple(index if place == axis else positions for place, positions in enumerate(own))
