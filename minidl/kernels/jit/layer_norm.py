"""Layer norm and group norm: rows of numbers, each brought to mean 0 and variance 1; a row is read once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import REASSOCIATE, compiled, inner
from minidl.kernels.jit.eligible import contiguous
from minidl.kernels.jit.layer_norm_short import layer_norm_of_short_rows, layer_norm_of_short_rows_backward
from minidl.kernels.jit.summation import BLOCK, add_column_products, add_columns, sum_of, sum_of_squares

__all__ = ["layer_norm", "layer_norm_backward"]

SHORT = 32  # rows shorter than this are normalised side by side
CHUNK = 16384  # numbers of g, and of xhat, that stay in the second cache


def layer_norm(x: Array, weight: Array, bias: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """x (rows, d), weight and bias (groups, d) or (d,) -> out and xhat (rows, d), and 1 / std (rows,).

    Row i is scaled by row i % groups of the weight.
    """
    arrays = contiguous(x, weight, np.zeros_like(weight) if bias is None else bias)
    if arrays is None:
        return reference.layer_norm(x, weight, bias, eps)
    x, weight, shift = arrays
    out, normalized = np.empty_like(x), np.empty_like(x)
    inverse_std = np.empty(len(x), dtype=x.dtype)
    d = x.shape[1]
    if d < SHORT and weight.size == d:
        flat = weight.reshape(d), shift.reshape(d)
        layer_norm_of_short_rows(x, *flat, float(eps), out, normalized, inverse_std)
        return out, normalized, inverse_std
    _layer_norm(x, weight.reshape(-1, d), shift.reshape(-1, d), float(eps), out, normalized, inverse_std)
    return out, normalized, inverse_std


def layer_norm_backward(g: Array, normalized: Array, inverse_std: Array, weight: Array) -> tuple[Array, Array, Array]:
    """-> the gradients with respect to x, weight and bias."""
    arrays = contiguous(g, normalized, inverse_std, weight)
    if arrays is None:
        return reference.layer_norm_backward(g, normalized, inverse_std, weight)
    g, normalized, inverse_std, weight = arrays
    rows = weight.reshape(-1, g.shape[1])
    gradient, g_weight, g_bias = np.empty_like(g), np.empty_like(rows), np.empty_like(rows)
    if len(rows[0]) < SHORT and len(rows) == 1:
        flat = rows[0], gradient, g_weight[0], g_bias[0]
        layer_norm_of_short_rows_backward(g, normalized, inverse_std, *flat)
    else:
        _layer_norm_backward(g, normalized, inverse_std, rows, gradient, g_weight, g_bias)
    return gradient, g_weight.reshape(weight.shape), g_bias.reshape(weight.shape)


@compiled(REASSOCIATE)
def _layer_norm(x: Any, weight: Any, bias: Any, eps: float, out: Any, normalized: Any, inverse_std: Any) -> None:
    rows, d = x.shape
    real = x.dtype.type
    k = len(weight) - 1  # the row of the weight
    for i in range(rows):
        row = x[i]
        mean = sum_of(row) / d
        inverse = real(1 / math.sqrt(sum_of_squares(row, mean) / d + eps))
        inverse_std[i] = inverse
        k = k + 1 if k + 1 < len(weight) else 0
        _scale(row, real(mean), inverse, weight[k], bias[k], normalized[i], out[i])


@inner(REASSOCIATE)
def _scale(row: Any, mean: Any, inverse: Any, weight: Any, bias: Any, normalized: Any, out: Any) -> None:
    for j in range(row.size):
        centred = (row[j] - mean) * inverse
        normalized[j] = centred
        out[j] = centred * weight[j] + bias[j]


@compiled(REASSOCIATE)
def _layer_norm_backward(
    g: Any, normalized: Any, inverse_std: Any, weight: Any, gradient: Any, g_weight: Any, g_bias: Any
) -> None:
    rows, d = g.shape
    real = g.dtype.type
    total_weight, total_bias = np.zeros(weight.size), np.zeros(weight.size)
    chunk = max(1, CHUNK // weight.size) * len(weight)
    for start in range(0, rows, chunk):  # its numbers stay in the cache between the two loops
        stop = min(start + chunk, rows)
        k = 0  # the row of the weight
        for i in range(start, stop):
            sum_g, sum_gx = _two_sums(g[i], normalized[i], weight[k])
            mean_g, mean_gx = real(sum_g / d), real(sum_gx / d)
            _backward_row(g[i], normalized[i], weight[k], mean_g, mean_gx, inverse_std[i], gradient[i])
            k = k + 1 if k + 1 < len(weight) else 0
        add_columns(g[start:stop].reshape(-1), total_bias)
        add_column_products(g[start:stop].reshape(-1), normalized[start:stop].reshape(-1), total_weight)
    for k in range(len(weight)):
        for j in range(d):
            g_weight[k, j], g_bias[k, j] = total_weight[k * d + j], total_bias[k * d + j]


@inner(REASSOCIATE)
def _two_sums(g: Any, normalized: Any, weight: Any) -> Any:
    """The sums of g weight and of g weight xhat, both in float64."""
    total_g, total_gx = 0.0, 0.0
    for start in range(0, g.size, BLOCK):
        stop = min(start + BLOCK, g.size)
        sum_g, sum_gx = _two_sums_of_block(g[start:stop], normalized[start:stop], weight[start:stop])
        total_g += sum_g
        total_gx += sum_gx
    return total_g, total_gx


@inner(REASSOCIATE)
def _two_sums_of_block(g: Any, normalized: Any, weight: Any) -> Any:
    sum_g, sum_gx = g.dtype.type(0), g.dtype.type(0)
    for j in range(g.size):
        scaled = g[j] * weight[j]
        sum_g += scaled
        sum_gx += scaled * normalized[j]
    return np.float64(sum_g), np.float64(sum_gx)


@inner(REASSOCIATE)
def _backward_row(g: Any, normalized: Any, weight: Any, mean_g: Any, mean_gx: Any, inverse: Any, gradient: Any) -> None:
    for j in range(g.size):
        gradient[j] = (g[j] * weight[j] - mean_g - normalized[j] * mean_gx) * inverse
