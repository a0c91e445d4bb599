"""Batch norm and layer norm with as few passes over memory as the dependences allow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import REASSOCIATE, compiled
from minidl.kernels.jit.eligible import eligible

__all__ = ["batch_norm", "batch_norm_backward", "channel_statistics", "layer_norm", "layer_norm_backward"]


def channel_statistics(x: Array) -> tuple[Array, Array]:
    """x (n, c, ...) -> mean and (biased) variance of every channel, both (c,)."""
    if not eligible(x):
        return reference.channel_statistics(x)
    mean, var = np.empty(x.shape[1], dtype=x.dtype), np.empty(x.shape[1], dtype=x.dtype)
    _channel_statistics(_planes(x), mean, var)
    return mean, var


def batch_norm(x: Array, mean: Array, var: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, Array, Array]:
    """-> out and xhat, both of x's shape, and 1 / std (c,)."""
    if not eligible(x, mean, var, weight, bias):
        return reference.batch_norm(x, mean, var, weight, bias, eps)
    out, normalized = np.empty_like(x), np.empty_like(x)
    inverse_std = 1 / np.sqrt(var + x.dtype.type(eps))
    _batch_norm(_planes(x), mean, inverse_std, weight, bias, _planes(out), _planes(normalized))
    return out, normalized, inverse_std


def batch_norm_backward(
    g: Array, normalized: Array, inverse_std: Array, weight: Array, training: bool
) -> tuple[Array, Array, Array]:
    """-> the gradients with respect to x, weight and bias. Not training, mean and std are constants."""
    if not eligible(g, normalized, inverse_std, weight):
        return reference.batch_norm_backward(g, normalized, inverse_std, weight, training)
    gradient, g_weight, g_bias = np.empty_like(g), np.empty_like(weight), np.empty_like(weight)
    _batch_norm_backward(
        _planes(g), _planes(normalized), inverse_std, weight, training, _planes(gradient), g_weight, g_bias
    )
    return gradient, g_weight, g_bias


def layer_norm(x: Array, weight: Array, bias: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """x (rows, d), weight and bias (d,) -> out and xhat (rows, d), and 1 / std (rows,)."""
    shift = np.zeros_like(weight) if bias is None else bias
    if not eligible(x, weight, shift):
        return reference.layer_norm(x, weight, bias, eps)
    out, normalized = np.empty_like(x), np.empty_like(x)
    inverse_std = np.empty(len(x), dtype=x.dtype)
    _layer_norm(x, weight, shift, x.dtype.type(eps), out, normalized, inverse_std)
    return out, normalized, inverse_std


def layer_norm_backward(g: Array, normalized: Array, inverse_std: Array, weight: Array) -> tuple[Array, Array, Array]:
    """-> the gradients with respect to x, weight and bias."""
    if not eligible(g, normalized, inverse_std, weight):
        return reference.layer_norm_backward(g, normalized, inverse_std, weight)
    gradient, g_weight, g_bias = np.empty_like(g), np.zeros_like(weight), np.zeros_like(weight)
    _layer_norm_backward(g, normalized, inverse_std, weight, gradient, g_weight, g_bias)
    return gradient, g_weight, g_bias


def _planes(x: Array) -> Array:
    """(n, c, ...) -> (n, c, m): the m numbers of one sample and channel lie next to each other."""
    return x.reshape(x.shape[0], x.shape[1], -1)


@compiled(REASSOCIATE)
def _channel_statistics(x: Any, mean: Any, var: Any) -> None:
    # Mean and sum of squared deviations of each plane, while it is in the first cache, merged in float64. Source: Chan,
    # Golub and LeVeque, Algorithms for Computing the Sample Variance, The American Statistician 37 (1983), eq. 1.5.
    n, channels, m = x.shape
    for c in range(channels):
        total_mean, total_squares = 0.0, 0.0
        for i in range(n):
            plane = x[i, c]
            total = x.dtype.type(0)
            for j in range(m):
                total += plane[j]
            centre = total / x.dtype.type(m)
            squares = x.dtype.type(0)
            for j in range(m):
                squares += (plane[j] - centre) * (plane[j] - centre)
            delta = float(centre) - total_mean
            total_mean += delta / (i + 1)
            total_squares += float(squares) + delta * delta * m * i / (i + 1)
        mean[c], var[c] = total_mean, total_squares / (n * m)


@compiled(REASSOCIATE)
def _batch_norm(x: Any, mean: Any, inverse_std: Any, weight: Any, bias: Any, out: Any, normalized: Any) -> None:
    for i in range(x.shape[0]):
        for c in range(x.shape[1]):
            m, s, w, b = mean[c], inverse_std[c], weight[c], bias[c]
            for j in range(x.shape[2]):
                centred = (x[i, c, j] - m) * s
                normalized[i, c, j] = centred
                out[i, c, j] = centred * w + b


@compiled(REASSOCIATE)
def _batch_norm_backward(
    g: Any, normalized: Any, inverse_std: Any, weight: Any, training: bool, gradient: Any, g_weight: Any, g_bias: Any
) -> None:
    n, channels, m = g.shape
    real = g.dtype.type
    for c in range(channels):  # one channel of all samples fits into the second cache: read twice, fetched once
        total_g, total_gx = 0.0, 0.0
        for i in range(n):
            sum_g, sum_gx = real(0), real(0)
            for j in range(m):
                sum_g += g[i, c, j]
                sum_gx += g[i, c, j] * normalized[i, c, j]
            total_g += float(sum_g)
            total_gx += float(sum_gx)
        g_bias[c], g_weight[c] = total_g, total_gx
        scale = weight[c] * inverse_std[c]
        mean_g, mean_gx = real(0), real(0)
        if training:
            mean_g, mean_gx = real(total_g / (n * m)), real(total_gx / (n * m))
        for i in range(n):
            for j in range(m):
                gradient[i, c, j] = (g[i, c, j] - mean_g - normalized[i, c, j] * mean_gx) * scale


@compiled(REASSOCIATE)
def _layer_norm(x: Any, weight: Any, bias: Any, eps: Any, out: Any, normalized: Any, inverse_std: Any) -> None:
    real = x.dtype.type
    count = real(x.shape[1])
    for i in range(x.shape[0]):
        total, squares = real(0), real(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total / count
        for j in range(x.shape[1]):
            squares += (x[i, j] - mean) * (x[i, j] - mean)
        inverse = real(1) / math.sqrt(squares / count + eps)
        inverse_std[i] = inverse
        for j in range(x.shape[1]):
            centred = (x[i, j] - mean) * inverse
            normalized[i, j] = centred
            out[i, j] = centred * weight[j] + bias[j]


@compiled(REASSOCIATE)
def _layer_norm_backward(
    g: Any, normalized: Any, inverse_std: Any, weight: Any, gradient: Any, g_weight: Any, g_bias: Any
) -> None:
    real = g.dtype.type
    count = real(g.shape[1])
    for i in range(g.shape[0]):
        sum_g, sum_gx = real(0), real(0)
        for j in range(g.shape[1]):
            g_normalized = g[i, j] * weight[j]
            sum_g += g_normalized
            sum_gx += g_normalized * normalized[i, j]
        mean_g, mean_gx, inverse = sum_g / count, sum_gx / count, inverse_std[i]
        for j in range(g.shape[1]):
            gradient[i, j] = (g[i, j] * weight[j] - mean_g - normalized[i, j] * mean_gx) * inverse
            g_weight[j] += g[i, j] * normalized[i, j]
            g_bias[j] += g[i, j]
