"""Sums, means, maxima and minima, and sums that scatter or gather rows, in readable numpy (or CuPy).

numpy adds the rows of a matrix one after another in their own type, which in float32 loses digits with every addition
(1,000,000 rows of 0.1 give 100,958); so all sums are taken in float64 and rounded once.
"""

from __future__ import annotations

from minidl.kernels import Array, array_module

__all__ = [
    "embedding",
    "embedding_backward",
    "extremum_backward",
    "max",
    "mean",
    "min",
    "sum",
    "sum_channels",
    "sum_rows",
]

Axis = int | tuple[int, ...] | None


def sum(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The sum over `axis`; integers and booleans as numpy adds them."""
    if x.dtype.kind != "f":
        return x.sum(axis=axis, keepdims=keepdims)
    return x.sum(axis=axis, keepdims=keepdims, dtype="float64").astype(x.dtype)


def mean(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The mean over `axis`; of integers and booleans in float64."""
    out = x.mean(axis=axis, keepdims=keepdims, dtype="float64")
    return out.astype(x.dtype) if x.dtype.kind == "f" else out


def max(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The maximum over `axis`."""
    return x.max(axis=axis, keepdims=keepdims)


def min(x: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The minimum over `axis`."""
    return x.min(axis=axis, keepdims=keepdims)


def extremum_backward(g: Array, x: Array, extremum: Array, axis: Axis) -> Array:
    """The gradient of x; g and extremum, the maxima or minima, have the reduced axes with length 1. Ties share it."""
    ties = x == extremum
    return ties * (g / ties.sum(axis=axis, keepdims=True).astype(x.dtype))


def sum_rows(rows: Array) -> Array:
    """(n, d) -> (d,): the gradient of a bias."""
    return sum(rows, 0)


def sum_channels(x: Array) -> Array:
    """x (n, c, h, w) -> (c,): the gradient of a convolution's bias."""
    return sum(x, (0, 2, 3))


def embedding(weight: Array, indices: Array) -> Array:
    """The rows of weight (n, d) with the given indices: (*indices.shape, d)."""
    return weight[indices]


def embedding_backward(g: Array, indices: Array, n: int) -> Array:
    """Add every row of g (*indices.shape, d) to the row of an (n, d) array that its index names; sums in float64."""
    module = array_module(g)
    gradient = module.zeros((n, g.shape[-1]), dtype="float64")
    module.add.at(gradient, indices.reshape(-1), g.reshape(-1, g.shape[-1]))
    return gradient.astype(g.dtype)
