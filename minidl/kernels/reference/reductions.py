"""Sums that scatter or gather rows, in readable numpy (or CuPy)."""

from __future__ import annotations

from minidl.kernels import Array, array_module

__all__ = ["embedding_backward", "sum_rows"]


def sum_rows(rows: Array) -> Array:
    """(n, d) -> (d,): the gradient of a bias."""
    return rows.sum(axis=0)


def embedding_backward(g: Array, indices: Array, n: int) -> Array:
    """Add every row of g (*indices.shape, d) to the row of an (n, d) array that its index names."""
    module = array_module(g)
    gradient = module.zeros((n, g.shape[-1]), dtype=g.dtype)
    module.add.at(gradient, indices.reshape(-1), g.reshape(-1, g.shape[-1]))
    return gradient
