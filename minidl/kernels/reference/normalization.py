"""Batch norm and layer norm, in readable numpy (or CuPy).

With xhat = (x - mean) / std, and m values sharing one mean and variance, the gradient is
dx = (dxhat - mean(dxhat) - xhat mean(dxhat xhat)) / std: orthogonal to ones and to xhat. All sums are taken in float64.
"""

from __future__ import annotations

from minidl.kernels import Array, array_module
from minidl.kernels.reference.reductions import mean, sum

__all__ = ["batch_norm", "batch_norm_backward", "channel_statistics", "layer_norm", "layer_norm_backward"]


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
    """-> the gradients with respect to x, weight and bias. Not training, mean and std are constants."""
    axes = (0, *range(2, g.ndim))
    shape = (-1,) + (1,) * (g.ndim - 2)
    gx = g * normalized
    scale = (weight * inverse_std).reshape(shape)
    gradient = g * scale
    if training and g.size:
        gradient = (g - mean(g, axes).reshape(shape) - normalized * mean(gx, axes).reshape(shape)) * scale
    return gradient, sum(gx, axes), sum(g, axes)


def layer_norm(x: Array, weight: Array, bias: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """x (rows, d), weight and bias (groups, d) or (d,) -> out and xhat (rows, d), and 1 / std (rows,).

    Row i is scaled by row i % groups of the weight.
    """
    var = x.var(axis=1, dtype="float64").astype(x.dtype)
    inverse_std = 1 / array_module(x).sqrt(var + eps)
    normalized = (x - mean(x, 1, True)) * inverse_std[:, None]
    out = _grouped(normalized, weight) * weight
    return (out if bias is None else out + bias).reshape(x.shape), normalized, inverse_std


def layer_norm_backward(g: Array, normalized: Array, inverse_std: Array, weight: Array) -> tuple[Array, Array, Array]:
    """-> the gradients with respect to x, weight and bias."""
    g_normalized = (_grouped(g, weight) * weight).reshape(g.shape)
    mean_g, mean_gx = mean(g_normalized, 1, True), mean(g_normalized * normalized, 1, True)
    return (
        (g_normalized - mean_g - normalized * mean_gx) * inverse_std[:, None],
        sum(_grouped(g * normalized, weight), 0),
        sum(_grouped(g, weight), 0),
    )


def _grouped(rows: Array, weight: Array) -> Array:
    """The rows in which each row of the weight is used once, along an axis."""
    groups = 1 if weight.ndim == 1 else len(weight)
    return rows.reshape(len(rows) // groups, *weight.shape)
