"""The gradient of indexing: every number goes back to where it was taken from, and is added up where several meet."""

from __future__ import annotations

from math import prod
from typing import Any

from minidl import kernels
from minidl.kernels import Array, array_module


def scatter(g: Array, index: Any, x: Array) -> Array:
    """An array like x, of zeros, to which g, shaped as x[index], is added at the index.

    An element that the index names several times collects all their numbers. Arrays of integers for the first axes
    name whole rows of x, which are added as such; every other index names single elements.
    """
    found = _rows(index, x)
    if found is None:
        elements = array_module(x).arange(x.size).reshape(x.shape)[index]
        found = elements, 1
    rows, length = found
    count = x.size // length if length else 0
    if not g.size:
        return array_module(x).zeros_like(x)
    return kernels.current().embedding_backward(g.reshape(rows.size, length), rows.reshape(-1), count).reshape(x.shape)


def _rows(index: Any, x: Array) -> tuple[Array, int] | None:
    """The rows of x that an index of integer arrays for the first axes names, and their length; else None."""
    module = array_module(x)
    items = index if isinstance(index, tuple) else (index,)
    if any(item is None or item is Ellipsis or isinstance(item, (slice, bool)) for item in items):
        return None
    rows: Any = 0
    for size, item in zip(x.shape, items, strict=False):
        indices = module.asarray(item)
        if indices.dtype.kind not in "iu":
            return None
        indices = indices.astype("int64", copy=False)
        rows = rows * size + module.where(indices < 0, indices + size, indices)
    return rows, prod(x.shape[len(items) :])
