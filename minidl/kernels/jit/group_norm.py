"""Group norm: one loop per channel, or the loops of layer norm if a channel has few numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import REASSOCIATE, compiled
from minidl.kernels.jit.eligible import contiguous
from minidl.kernels.jit.layer_norm import layer_norm, layer_norm_backward
from minidl.kernels.jit.reductions import sum
from minidl.kernels.jit.rows import copy
from minidl.kernels.jit.summation import mean_of, sum_of, sum_of_squares
from minidl.kernels.jit.xhat import sum_of_products_with_xhat, write_xhat
from minidl.kernels.reference.normalization import normalized_rows

__all__ = ["group_norm", "group_norm_backward"]

FEW = 32  # a channel with fewer numbers is not worth a loop


def group_norm(x: Array, groups: int, weight: Array, bias: Array, eps: float) -> tuple[Array, Array, Array]:
    """x (n, c, ...), weight and bias (c,) -> out, of x's shape, and mean and 1 / std (n * groups,)."""
    arrays = contiguous(x, weight, bias)
    if arrays is None:
        return reference.group_norm(x, groups, weight, bias, eps)
    x, weight, bias = arrays
    n, channels = x.shape[:2]
    m = x.size // (n * channels)
    if m < FEW:
        rows = x.reshape(n * groups, -1)
        out, mean, inverse_std = layer_norm(rows, np.ones_like(rows[0]), None, eps)
        planes = out.reshape(n, channels, m)
        planes *= weight[:, None]
        planes += bias[:, None]
        return out.reshape(x.shape), mean, inverse_std
    out, mean, inverse_std = np.empty_like(x), np.empty(n * groups, x.dtype), np.empty(n * groups, x.dtype)
    shape = (n * groups, channels // groups, m)
    _group_norm(x.reshape(shape), weight, bias, float(eps), out.reshape(shape), mean, inverse_std)
    return out, mean, inverse_std


def group_norm_backward(
    g: Array, x: Array, mean: Array, inverse_std: Array, groups: int, weight: Array
) -> tuple[Array, Array, Array]:
    """-> the gradients with respect to x, weight and bias."""
    arrays = contiguous(g, x, mean, inverse_std, weight)
    if arrays is None:
        return reference.group_norm_backward(g, x, mean, inverse_std, groups, weight)
    g, x, mean, inverse_std, weight = arrays
    n, channels = g.shape[:2]
    m = g.size // (n * channels)
    if m < FEW:
        planes, rows = g.reshape(n, channels, m), x.reshape(n * groups, -1)
        scaled = (planes * weight[:, None]).reshape(rows.shape)
        gradient = layer_norm_backward(scaled, rows, mean, inverse_std, np.ones_like(rows[0]))[0]
        g_weight = sum(planes * normalized_rows(rows, mean, inverse_std).reshape(planes.shape), (0, 2))
        return gradient.reshape(g.shape), g_weight, sum(planes, (0, 2))
    gradient, g_weight, g_bias = np.empty_like(g), np.empty_like(weight), np.empty_like(weight)
    shape = (n * groups, channels // groups, m)
    _group_norm_backward(
        g.reshape(shape), x.reshape(shape), mean, inverse_std, weight, gradient.reshape(shape), g_weight, g_bias
    )
    return gradient, g_weight, g_bias


@compiled(REASSOCIATE)
def _group_norm(x: Any, weight: Any, bias: Any, eps: float, out: Any, mean: Any, inverse_std: Any) -> None:
    rows, channels, m = x.shape
    real = x.dtype.type
    groups = weight.size // channels
    for i in range(rows):
        first = i % groups * channels
        numbers = x[i].reshape(-1)
        of_group = mean_of(numbers)
        inverse = real(1 / math.sqrt(sum_of_squares(numbers, of_group) / numbers.size + eps))
        centre = real(of_group)
        mean[i], inverse_std[i] = centre, inverse
        for c in range(channels):
            w, b = weight[first + c], bias[first + c]
            for j in range(m):
                out[i, c, j] = (x[i, c, j] - centre) * inverse * w + b


@compiled(REASSOCIATE)
def _group_norm_backward(
    g: Any, x: Any, mean: Any, inverse_std: Any, weight: Any, gradient: Any, g_weight: Any, g_bias: Any
) -> None:
    rows, channels, m = g.shape
    real = g.dtype.type
    groups = weight.size // channels
    total_weight, total_bias = np.zeros(weight.size), np.zeros(weight.size)
    for i in range(rows):
        first = i % groups * channels
        centre, inverse = mean[i], inverse_std[i]
        sum_g, sum_gx = 0.0, 0.0
        for c in range(channels):
            of_bias, of_weight = sum_of(g[i, c]), sum_of_products_with_xhat(g[i, c], x[i, c], centre, inverse)
            total_bias[first + c] += of_bias
            total_weight[first + c] += of_weight
            sum_g += of_bias * weight[first + c]
            sum_gx += of_weight * weight[first + c]
        mean_g, mean_gx = real(sum_g / (channels * m)), real(sum_gx / (channels * m))
        for c in range(channels):
            w, xhat = weight[first + c], gradient[i, c]  # xhat is written where its gradient will be
            write_xhat(x[i, c], centre, inverse, xhat)
            for j in range(m):
                xhat[j] = (g[i, c, j] * w - mean_g - xhat[j] * mean_gx) * inverse
    copy(total_weight, g_weight)
    copy(total_bias, g_bias)
