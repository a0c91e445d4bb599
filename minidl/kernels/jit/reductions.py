"""Sums that scatter or gather rows, in one pass over memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import compiled
from minidl.kernels.jit.eligible import eligible

__all__ = ["embedding_backward", "sum_rows"]


def sum_rows(rows: Array) -> Array:
    """(n, d) -> (d,): the gradient of a bias."""
    if not eligible(rows) or rows.ndim != 2:
        return reference.sum_rows(rows)
    out = np.zeros(rows.shape[1], dtype=rows.dtype)
    _add_rows(rows, out)
    return out


def embedding_backward(g: Array, indices: Array, n: int) -> Array:
    """Add every row of g (*indices.shape, d) to the row of an (n, d) array that its index names."""
    if not eligible(g):
        return reference.embedding_backward(g, indices, n)
    gradient = np.zeros((n, g.shape[-1]), dtype=g.dtype)
    _scatter_rows(g.reshape(-1, g.shape[-1]), indices.astype(np.int64, copy=False).reshape(-1), gradient)
    return gradient


@compiled()
def _add_rows(rows: Any, out: Any) -> None:
    n, d = rows.shape
    whole = n - n % 4
    for i in range(0, whole, 4):  # four rows a time: a quarter of the passes over `out`
        a, b, c, e = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        for j in range(d):
            out[j] += (a[j] + b[j]) + (c[j] + e[j])
    for i in range(whole, n):
        for j in range(d):
            out[j] += rows[i, j]


@compiled()
def _scatter_rows(g: Any, indices: Any, gradient: Any) -> None:
    for i in range(indices.size):
        row, source = gradient[indices[i]], g[i]
        for j in range(source.size):
            row[j] += source[j]
