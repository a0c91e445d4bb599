"""Batch norm and layer norm, in readable numpy (or CuPy).

With xhat = (x - mean) / std, and m values sharing one mean and variance, the gradient is
dx = (dxhat - mean(dxhat) - xhat mean(dxhat xhat)) / std: orthogonal to ones and to xhat.
"""

from __future__ import annotations

from minidl.kernels import Array, array_module

__all__ = ["batch_norm", "batch_norm_backward", "channel_statistics", "layer_norm", "layer_norm_backward"]


def channel_statistics(x: Array) -> tuple[Array, Array]:
    """x (n, c, ...) -> mean and (biased) variance of every channel, both (c,)."""
    axes = (0, *range(2, x.ndim))
    return x.mean(axis=axes), x.var(axis=axes)


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
    g_weight, g_bias = (g * normalized).sum(axis=axes), g.sum(axis=axes)
    scale = (weight * inverse_std).reshape(shape)
    if not training:
        return g * scale, g_weight, g_bias
    count = max(g.size // g.shape[1], 1) if g.shape[1] else 1
    mean_g, mean_gx = (g_bias / count).reshape(shape), (g_weight / count).reshape(shape)
    return (g - mean_g - normalized * mean_gx) * scale, g_weight, g_bias


def layer_norm(x: Array, weight: Array, bias: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """x (rows, d), weight and bias (d,) -> out and xhat (rows, d), and 1 / std (rows,)."""
    centred = x - x.mean(axis=1, keepdims=True)
    inverse_std = 1 / array_module(x).sqrt((centred * centred).mean(axis=1) + eps)
    normalized = centred * inverse_std[:, None]
    out = normalized * weight
    return (out if bias is None else out + bias), normalized, inverse_std


def layer_norm_backward(g: Array, normalized: Array, inverse_std: Array, weight: Array) -> tuple[Array, Array, Array]:
    """-> the gradients with respect to x, weight and bias."""
    g_normalized = g * weight
    mean_g = g_normalized.mean(axis=1, keepdims=True)
    mean_gx = (g_normalized * normalized).mean(axis=1, keepdims=True)
    return (
        (g_normalized - mean_g - normalized * mean_gx) * inverse_std[:, None],
        (g * normalized).sum(axis=0),
        g.sum(axis=0),
    )
