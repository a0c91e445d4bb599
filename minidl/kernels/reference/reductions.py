"""Sums, means, extrema, products and running sums; sums that scatter or gather rows: readable numpy (or CuPy).

numpy adds the rows of a matrix one after another in their own type, which in float32 loses digits with every addition
(1,000,000 rows of 0.1 give 100,958). So all sums here are computed in float64 and rounded once.
"""

from __future__ import annotations

from minidl.kernels import Array, array_module

__all__ = [
    "cumsum",
    "embedding",
    "embedding_backward",
    "extremum_backward",
    "index_add",
    "max",
    "mean",
    "min",
    "prod",
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


def prod(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """The product over `axis`."""
    return x.prod(axis=axis, keepdims=keepdims)


def cumsum(x: Array, axis: int, backwards: bool = False) -> Array:
    """Running sums along `axis`, from its start, or from its end if `backwards`."""
    order = (*[slice(None)] * (axis % x.ndim), slice(None, None, -1 if backwards else 1))
    if x.dtype.kind != "f":
        return x[order].cumsum(axis=axis)[order]
    return x[order].cumsum(axis=axis, dtype="float64")[order].astype(x.dtype)


def extremum_backward(g: Array, x: Array, extremum: Array, axis: Axis) -> Array:
    """The gradient of x; ties share it. g and extremum (maxima or minima) keep the reduced axes with length 1."""
    ties = x == extremum
    return ties * (g / ties.sum(axis=axis, keepdims=True).astype(x.dtype))


def sum_rows(rows: Array) -> Array:
    """(n, d) -> (d,): the gradient of a bias."""
    return sum(rows, 0)


def sum_channels(x: Array) -> Array:
    """x (n, c, h, w) -> (c,): the gradient of a convolution's bias."""
    return sum(x, (0, 2, 3))


def embedding(weight: Array, indices: Array) -> Array:
    """Return the rows of weight (n, d) at the given indices: (*indices.shape, d)."""
    return weight[indices]


def embedding_backward(g: Array, indices: Array, n: int) -> Array:
    """Add every row of g (*indices.shape, d) to the row of an (n, d) array that its index names; sums in float64."""
    return index_add(g.reshape(1, indices.size, g.shape[-1]), indices, n)[0]


def index_add(g: Array, indices: Array, n: int) -> Array:
    """Sums of the slices g[:, i] that go to one index: (outer, m, inner) -> (outer, n, inner); in float64.

    indices: m numbers 0 <= index < n, in any shape.
    """
    module = array_module(g)
    out = module.zeros((n, g.shape[0], g.shape[2]), dtype="float64")
    module.add.at(out, indices.reshape(-1), g.swapaxes(0, 1))
    return module.ascontiguousarray(out.swapaxes(0, 1).astype(g.dtype))
