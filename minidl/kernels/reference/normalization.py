"""Batch norm, layer norm and group norm, in readable numpy (or CuPy).

With xhat = (x - mean) / std, and m values sharing one mean and variance, the gradient is
dx = (dxhat - mean(dxhat) - xhat mean(dxhat xhat)) / std: orthogonal to ones and to xhat. All sums are taken in float64.
"""

from __future__ import annotations

from math import prod

from minidl.kernels import Array, array_module
from minidl.kernels.reference.reductions import mean, sum

__all__ = [
    "batch_norm",
    "batch_norm_backward",
    "channel_statistics",
    "group_norm",
    "group_norm_backward",
    "layer_norm",
    "layer_norm_backward",
]


def channel_statistics(x: Array) -> tuple[Array, Array]:
    """x (n, c, ...) -> mean and (biased) variance of every channel, both (c,)."""
    axes = (0, *range(2, x.ndim))
    return mean(x, axes), x.var(axis=axes, dtype="float64").astype(x.dtype)


def batch_norm(x: Array, mean: Array, var: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, Array, Array]:
    """-> out and xhat, both of x's shape, and 1 / std (c,)."""
    shape = (-1,) + (1,) * (x.ndim - 2)
    inverse_std = 1 / array_module(x).sqrt(var + eps)
    normalized = (x - mean.reshape(shape)) * inverse_std.reshape(shape)
    return normalized * weight.reshape(shape) + bias.reshape(shape), normalized, inverse_std


def batch_norm_backward(
    g: Array, normalized: Array, inverse_std: Array, weight: Array, training: bool
) -> tuple[Array, Array, Array]:
    """-> the gradients with respect to x, weight and bias. Without training, mean and std are constants."""
    axes = (0, *range(2, g.ndim))
    shape = (-1,) + (1,) * (g.ndim - 2)
    gx = g * normalized
    scale = (weight * inverse_std).reshape(shape)
    gradient = g * scale
    if training and g.size:
        gradient = through_statistics(g, normalized, scale, mean(g, axes).reshape(shape), mean(gx, axes).reshape(shape))
    return gradient, sum(gx, axes), sum(g, axes)


def layer_norm(x: Array, weight: Array, bias: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """x (rows, d), weight and bias (d,) -> out and xhat (rows, d), and 1 / std (rows,)."""
    normalized, inverse_std = _normalized_rows(x, eps)
    out = normalized * weight
    return (out if bias is None else out + bias), normalized, inverse_std


def layer_norm_backward(g: Array, normalized: Array, inverse_std: Array, weight: Array) -> tuple[Array, Array, Array]:
    """-> the gradients with respect to x, weight and bias."""
    return _rows_backward(g * weight, normalized, inverse_std), sum(g * normalized, 0), sum(g, 0)


def group_norm(x: Array, groups: int, weight: Array, bias: Array, eps: float) -> tuple[Array, Array, Array]:
    """x (n, c, ...), weight and bias (c,) -> out and xhat, both of x's shape, and 1 / std (n * groups,)."""
    rows, inverse_std = _normalized_rows(x.reshape(len(x) * groups, prod(x.shape[1:]) // groups), eps)
    normalized = rows.reshape(x.shape)
    shape = (-1,) + (1,) * (x.ndim - 2)
    return normalized * weight.reshape(shape) + bias.reshape(shape), normalized, inverse_std


def group_norm_backward(
    g: Array, normalized: Array, inverse_std: Array, groups: int, weight: Array
) -> tuple[Array, Array, Array]:
    """-> the gradients with respect to x, weight and bias."""
    rows = (len(g) * groups, prod(g.shape[1:]) // groups)
    axes = (0, *range(2, g.ndim))
    g_normalized = g * weight.reshape((-1,) + (1,) * (g.ndim - 2))
    gradient = _rows_backward(g_normalized.reshape(rows), normalized.reshape(rows), inverse_std)
    return gradient.reshape(g.shape), sum(g * normalized, axes), sum(g, axes)


def _normalized_rows(x: Array, eps: float) -> tuple[Array, Array]:
    var = x.var(axis=1, dtype="float64").astype(x.dtype)
    inverse_std = 1 / array_module(x).sqrt(var + eps)
    return (x - mean(x, 1, True)) * inverse_std[:, None], inverse_std


def _rows_backward(g: Array, normalized: Array, inverse_std: Array) -> Array:
    """g: the gradient of xhat."""
    return through_statistics(g, normalized, inverse_std[:, None], mean(g, 1, True), mean(g * normalized, 1, True))


def through_statistics(g: Array, normalized: Array, scale: Array, mean_g: Array, mean_gx: Array) -> Array:
    """The gradient of x where mean and std depend on it: dx of the formula above, scale being weight / std."""
    return (g - mean_g - normalized * mean_gx) * scale
