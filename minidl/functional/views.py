"""Views: axes added, dropped, reordered or repeated, and tensors split, all without a copy.

>>> from minidl import Tensor
>>> x = Tensor([[1.0, 2.0, 3.0, 4.0]])
>>> x.squeeze(0).unsqueeze(1).shape, x.expand(3, -1).shape, [chunk.shape for chunk in x.chunk(2, dim=1)]
((4, 1), (3, 4), [(1, 2), (1, 2)])
"""

from __future__ import annotations

import operator
from typing import Any

from minidl.functional.axes import counted_from_start, one_axis, one_spelling
from minidl.functional.bind import operand, tensor_method, unbroadcast
from minidl.functional.shapes import getitem, reshape, transpose
from minidl.kernels import array_module
from minidl.tensor import Tensor, record
from minidl.tensor.methods import Axis


def unpacked(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """The sizes or axes of a call, given as `f(2, 3)` or as `f((2, 3))`."""
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes


tensor_method("view")(reshape)  # where the memory's order does not allow a view, numpy copies


@tensor_method("squeeze")
def squeeze(a: Any, dim: Axis = None, *, axis: Axis = None) -> Tensor:
    """Drop the axes of length 1: all of them, or those of `dim` that have it."""
    a = operand(a)
    chosen, _ = one_spelling("squeeze", axis, None, dim, None)
    if chosen is None:
        chosen = range(a.ndim)
    elif not isinstance(chosen, tuple):
        chosen = (chosen,)
    axes = {counted_from_start("squeeze", each, a.data) for each in chosen}
    return reshape(a, tuple(length for i, length in enumerate(a.shape) if length != 1 or i not in axes))


@tensor_method("unsqueeze")
def unsqueeze(a: Any, dim: int | None = None, *, axis: int | None = None) -> Tensor:
    """Add an axis of length 1 before axis `dim`; -1 adds the last."""
    a = operand(a)
    place = counted_from_start("unsqueeze", one_axis("unsqueeze", axis, dim), a.data, extra=1)
    return reshape(a, (*a.shape[:place], 1, *a.shape[place:]))


@tensor_method("flatten")
def flatten(a: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge the axes from start_dim to end_dim, both included; `x.flatten(1)` makes each sample a row."""
    a = operand(a)
    if not a.ndim:
        return reshape(a, (1,))
    first, last = (counted_from_start("flatten", each, a.data) for each in (start_dim, end_dim))
    if first > last:
        raise ValueError(f"flatten: start_dim {start_dim} lies behind end_dim {end_dim} in shape {a.shape}")
    length = 1
    for each in a.shape[first : last + 1]:
        length *= each
    return reshape(a, (*a.shape[:first], length, *a.shape[last + 1 :]))


@tensor_method("permute")
def permute(a: Any, *dims: Any) -> Tensor:
    """Reorder the axes: `x.permute(0, 2, 3, 1)` turns (n, c, h, w) into (n, h, w, c)."""
    a = operand(a)
    order = [counted_from_start("permute", each, a.data) for each in unpacked(dims)]
    if sorted(order) != list(range(a.ndim)):
        raise ValueError(f"permute: every axis of shape {a.shape} once expected, got {unpacked(dims)}")
    return transpose(a, order)


@tensor_method("expand")
def expand(a: Any, *sizes: Any) -> Tensor:
    """Repeat a along its axes of length 1, to the given lengths, without a copy; -1 keeps a length.

    >>> expand([[1.0], [2.0]], -1, 3).shape
    (2, 3)
    """
    a, lengths = operand(a), unpacked(sizes)
    own = (None,) * (len(lengths) - a.ndim) + a.shape
    return broadcast_to(
        a, tuple(mine if each == -1 and mine is not None else each for each, mine in zip(lengths, own, strict=False))
    )


@tensor_method("broadcast_to")
def broadcast_to(a: Any, shape: Any) -> Tensor:
    """Repeat a to `shape` by numpy's rules of broadcasting, without a copy; the result must not be written into."""
    a = operand(a)
    x = a.data
    try:
        out = array_module(x).broadcast_to(x, shape)
    except ValueError as error:
        raise ValueError(
            f"a tensor of shape {x.shape} cannot be expanded to {tuple(shape)}: from the last axis backwards every "
            "length must be equal or 1"
        ) from error
    own, dtype = x.shape, x.dtype
    return record(out, (a,), lambda g, needs: (unbroadcast(g, own, dtype),), view_of=a)


@tensor_method("split")
def split(a: Any, split_size_or_sections: int | list[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Split a along `dim` into views of one length (the last may be shorter), or of the lengths in a list.

    An integer is a length, as in PyTorch; numpy's `split` takes the number of views, as `chunk` does here.

    >>> [view.shape for view in split([1.0, 2.0, 3.0], 2)]
    [(2,), (1,)]
    """
    a = operand(a)
    axis = counted_from_start("split", dim, a.data)
    if not a.ndim:
        raise ValueError("split: a 0-d tensor has no axis to split along")
    length = a.shape[axis]
    if isinstance(split_size_or_sections, (list, tuple)):
        lengths = [operator.index(each) for each in split_size_or_sections]
        if sum(lengths) != length or min(lengths, default=0) < 0:
            raise ValueError(f"split: lengths with the sum {length} expected, that of axis {axis}, got {lengths}")
    else:
        size = operator.index(split_size_or_sections)
        if size <= 0:
            raise ValueError(f"split: the length must be at least 1, got {size}")
        lengths = [min(size, length - start) for start in range(0, length, size)] or [0]
    views, start = [], 0
    for each in lengths:
        views.append(getitem(a, (*[slice(None)] * axis, slice(start, start + each))))
        start += each
    return tuple(views)


@tensor_method("chunk")
def chunk(a: Any, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Split a along `dim` into at most `chunks` views, of equal length except the last.

    >>> [view.shape for view in chunk([1.0, 2.0, 3.0, 4.0, 5.0], 2)]
    [(3,), (2,)]
    """
    a = operand(a)
    if operator.index(chunks) <= 0:
        raise ValueError(f"chunk: chunks must be at least 1, got {chunks}")
    length = a.shape[counted_from_start("chunk", dim, a.data)] if a.ndim else 0
    return split(a, max(-(-length // chunks), 1), dim)


def _matrices_transposed(a: Tensor) -> Tensor:
    if a.ndim < 2:
        raise ValueError(f"x.mT exchanges the last two axes, and a tensor of shape {a.shape} has fewer")
    return transpose(a, -2, -1)


Tensor.mT = property(_matrices_transposed, doc="The last two axes exchanged: each matrix transposed.")  # type: ignore[assignment]
