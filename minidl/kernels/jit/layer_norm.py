"""Layer norm: each row is normalised to mean 0 and variance 1 while it is in the first-level cache."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import REASSOCIATE, compiled, inner
from minidl.kernels.jit.eligible import contiguous
from minidl.kernels.jit.layer_norm_short import layer_norm_of_short_rows, layer_norm_of_short_rows_backward
from minidl.kernels.jit.rows import copy
from minidl.kernels.jit.summation import BLOCK, add_column_products, add_columns, sum_of, sum_of_squares

__all__ = ["layer_norm", "layer_norm_backward"]

SHORT = 32  # rows shorter than this are normalised several at a time
CHUNK = 16384  # numbers of g, and of xhat, that stay in the second cache


def layer_norm(x: Array, weight: Array, bias: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """x (rows, d), weight and bias (d,) -> out and xhat (rows, d), and 1 / std (rows,)."""
    arrays = contiguous(x, weight, np.zeros_like(weight) if bias is None else bias)
    if arrays is None:
        return reference.layer_norm(x, weight, bias, eps)
    x, weight, shift = arrays
    out, normalized = np.empty_like(x), np.empty_like(x)
    inverse_std = np.empty(len(x), dtype=x.dtype)
    loop = layer_norm_of_short_rows if x.shape[1] < SHORT else _layer_norm
    loop(x, weight, shift, float(eps), out, normalized, inverse_std)
    return out, normalized, inverse_std


def layer_norm_backward(g: Array, normalized: Array, inverse_std: Array, weight: Array) -> tuple[Array, Array, Array]:
    """-> the gradients with respect to x, weight and bias."""
    arrays = contiguous(g, normalized, inverse_std, weight)
    if arrays is None:
        return reference.layer_norm_backward(g, normalized, inverse_std, weight)
    g, normalized, inverse_std, weight = arrays
    gradient, g_weight, g_bias = np.empty_like(g), np.empty_like(weight), np.empty_like(weight)
    loop = layer_norm_of_short_rows_backward if g.shape[1] < SHORT else _layer_norm_backward
    loop(g, normalized, inverse_std, weight, gradient, g_weight, g_bias)
    return gradient, g_weight, g_bias


@compiled(REASSOCIATE)
def _layer_norm(x: Any, weight: Any, bias: Any, eps: float, out: Any, normalized: Any, inverse_std: Any) -> None:
    rows, d = x.shape
    real = x.dtype.type
    for i in range(rows):
        row = x[i]
        mean = sum_of(row) / d
        inverse = real(1 / math.sqrt(sum_of_squares(row, mean) / d + eps))
        inverse_std[i] = inverse
        _scale(row, real(mean), inverse, weight, bias, normalized[i], out[i])


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
    total_weight, total_bias = np.zeros(d), np.zeros(d)
    chunk = max(1, CHUNK // d)
    for start in range(0, rows, chunk):  # its numbers stay in the cache between the two loops
        stop = min(start + chunk, rows)
        for i in range(start, stop):
            sum_g, sum_gx = _two_sums(g[i], normalized[i], weight)
            mean_g, mean_gx = real(sum_g / d), real(sum_gx / d)
            _backward_row(g[i], normalized[i], weight, mean_g, mean_gx, inverse_std[i], gradient[i])
        add_columns(g[start:stop].reshape(-1), total_bias)
        add_column_products(g[start:stop].reshape(-1), normalized[start:stop].reshape(-1), total_weight)
    copy(total_weight, g_weight)
    copy(total_bias, g_bias)


@inner(REASSOCIATE)
def _two_sums(g: Any, normalized: Any, weight: Any) -> Any:
    """Return the sums of g weight and of g weight xhat, in float64."""
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
