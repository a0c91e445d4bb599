"""Sums that scatter or gather rows, in readable numpy (or CuPy)."""

from __future__ import annotations

from minidl.kernels import Array, array_module

__all__ = ["embedding", "embedding_backward", "sum_channels", "sum_rows"]


def sum_rows(rows: Array) -> Array:
    """(n, d) -> (d,): the gradient of a bias."""
    return rows.sum(axis=0)


def sum_channels(x: Array) -> Array:
    """x (n, c, h, w) -> (c,): the gradient of a convolution's bias."""
    return x.sum(axis=(0, 2, 3))


def embedding(weight: Array, indices: Array) -> Array:
    """The rows of weight (n, d) with the given indices: (*indices.shape, d)."""
    return weight[indices]


def embedding_backward(g: Array, indices: Array, n: int) -> Array:
    """Add every row of g (*indices.shape, d) to the row of an (n, d) array that its index names."""
    module = array_module(g)
    gradient = module.zeros((n, g.shape[-1]), dtype=g.dtype)
    module.add.at(gradient, indices.reshape(-1), g.reshape(-1, g.shape[-1]))
    return gradient
