"""The gradient of indexing: every number is added to the element that it was taken from."""

from __future__ import annotations

from math import prod
from types import ModuleType
from typing import Any

from minidl import kernels
from minidl.kernels import Array, array_module


def scatter(g: Array, index: Any, shape: tuple[int, ...]) -> Array:
    """Return zeros of this shape with g added at `index`; for an array x of this shape, g has the shape of x[index].

    An element that occurs several times in the index gets the sum of its numbers. Integer arrays for neighbouring axes,
    with whole axes before and after them, select slices of x, which are added as a whole; every other index selects
    single elements.
    """
    if not g.size:
        return array_module(g).zeros(shape, g.dtype)
    found = _slices(index, shape, array_module(g))
    if found is None:
        found = 1, array_module(g).arange(prod(shape)).reshape(shape)[index], prod(shape)
    outer, slices, n = found
    g = g.reshape(outer, slices.size, g.size // (outer * slices.size))
    return kernels.current().index_add(g, slices, n).reshape(shape)


def _slices(index: Any, shape: tuple[int, ...], module: ModuleType) -> tuple[int, Array, int] | None:
    """The size of the whole axes before, the indices of the selected slices, and the number of all slices; or None."""
    items = list(index) if isinstance(index, tuple) else [index]
    while items and _is_whole(items[-1]):
        items.pop()
    before = 0
    while before < len(items) and _is_whole(items[before]):
        before += 1
    items = items[before:]
    if any(item is None or item is Ellipsis or isinstance(item, (slice, bool)) for item in items):
        return None
    slices: Any = 0
    lengths = shape[before : before + len(items)]
    for length, item in zip(lengths, items, strict=True):
        indices = module.asarray(item)
        if indices.dtype.kind not in "iu":
            return None
        indices = indices.astype("int64", copy=False)
        slices = slices * length + module.where(indices < 0, indices + length, indices)
    return prod(shape[:before]), slices, prod(lengths)


def _is_whole(item: Any) -> bool:
    return isinstance(item, slice) and item == slice(None)
