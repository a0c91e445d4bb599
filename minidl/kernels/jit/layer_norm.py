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
from minidl.kernels.jit.summation import BLOCK, add_column_products, add_columns, mean_of, sum_of_squares
from minidl.kernels.jit.xhat import write_xhat

__all__ = ["layer_norm", "layer_norm_backward"]

SHORT = 32  # rows shorter than this are normalised several at a time
CHUNK = 16384  # numbers of g, and of xhat, that stay in the second cache


def layer_norm(x: Array, weight: Array, bias: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """x (rows, d), weight and bias (d,) -> out (rows, d), and mean and 1 / std (rows,)."""
    arrays = contiguous(x, weight, np.zeros_like(weight) if bias is None else bias)
    if arrays is None:
        return reference.layer_norm(x, weight, bias, eps)
    x, weight, shift = arrays
    out, mean, inverse_std = np.empty_like(x), np.empty(len(x), x.dtype), np.empty(len(x), x.dtype)
    loop = layer_norm_of_short_rows if x.shape[1] < SHORT else _layer_norm
    loop(x, weight, shift, float(eps), out, mean, inverse_std)
    return out, mean, inverse_std


def layer_norm_backward(
    g: Array, x: Array, mean: Array, inverse_std: Array, weight: Array
) -> tuple[Array, Array, Array]:
    """-> the gradients with respect to x, weight and bias."""
    arrays = contiguous(g, x, mean, inverse_std, weight)
    if arrays is None:
        return reference.layer_norm_backward(g, x, mean, inverse_std, weight)
    g, x, mean, inverse_std, weight = arrays
    gradient, g_weight, g_bias = np.empty_like(g), np.empty_like(weight), np.empty_like(weight)
    if g.shape[1] < SHORT:
        layer_norm_of_short_rows_backward(g, x, inverse_std, weight, gradient, g_weight, g_bias)
    else:
        _layer_norm_backward(g, x, mean, inverse_std, weight, gradient, g_weight, g_bias)
    return gradient, g_weight, g_bias


@compiled(REASSOCIATE)
def _layer_norm(x: Any, weight: Any, bias: Any, eps: float, out: Any, mean: Any, inverse_std: Any) -> None:
    rows, d = x.shape
    real = x.dtype.type
    for i in range(rows):
        row = x[i]
        centre = mean_of(row)
        inverse = real(1 / math.sqrt(sum_of_squares(row, centre) / d + eps))
        mean[i], inverse_std[i] = centre, inverse
        _scale(row, real(centre), inverse, weight, bias, out[i])


@inner(REASSOCIATE)
def _scale(row: Any, mean: Any, inverse: Any, weight: Any, bias: Any, out: Any) -> None:
    for j in range(row.size):
        out[j] = (row[j] - mean) * inverse * weight[j] + bias[j]


@compiled(REASSOCIATE)
def _layer_norm_backward(
    g: Any, x: Any, mean: Any, inverse_std: Any, weight: Any, gradient: Any, g_weight: Any, g_bias: Any
) -> None:
    rows, d = g.shape
    real = g.dtype.type
    total_weight, total_bias = np.zeros(d), np.zeros(d)
    xhat = gradient  # stored in the memory of the gradient
    chunk = max(1, CHUNK // d)
    for start in range(0, rows, chunk):  # a chunk stays in the cache between the loops
        stop = min(start + chunk, rows)
        for i in range(start, stop):
            write_xhat(x[i], mean[i], inverse_std[i], xhat[i])
        add_columns(g[start:stop].reshape(-1), total_bias)
        add_column_products(g[start:stop].reshape(-1), xhat[start:stop].reshape(-1), total_weight)
        for i in range(start, stop):
            sum_g, sum_gx = _two_sums(g[i], xhat[i], weight)
            mean_g, mean_gx = real(sum_g / d), real(sum_gx / d)
            _backward_row(g[i], weight, mean_g, mean_gx, inverse_std[i], gradient[i])
    copy(total_weight, g_weight)
    copy(total_bias, g_bias)


@inner(REASSOCIATE)
def _two_sums(g: Any, xhat: Any, weight: Any) -> Any:
    """Return the sums of g weight and of g weight xhat, in float64."""
    total_g, total_gx = 0.0, 0.0
    for start in range(0, g.size, BLOCK):
        stop = min(start + BLOCK, g.size)
        sum_g, sum_gx = _two_sums_of_block(g[start:stop], xhat[start:stop], weight[start:stop])
        total_g += sum_g
        total_gx += sum_gx
    return total_g, total_gx


@inner(REASSOCIATE)
def _two_sums_of_block(g: Any, xhat: Any, weight: Any) -> Any:
    sum_g, sum_gx = g.dtype.type(0), g.dtype.type(0)
    for j in range(g.size):
        scaled = g[j] * weight[j]
        sum_g += scaled
        sum_gx += scaled * xhat[j]
    return np.float64(sum_g), np.float64(sum_gx)


@inner(REASSOCIATE)
def _backward_row(g: Any, weight: Any, mean_g: Any, mean_gx: Any, inverse: Any, gradient: Any) -> None:
    """Replace xhat, stored in `gradient`, by the gradient; with two arrays, LLVM would not vectorise the loop."""
    for j in range(g.size):
        gradient[j] = (g[j] * weight[j] - mean_g - gradient[j] * mean_gx) * inverse
