"""Layer norm: each row is normalised to mean 0 and variance 1 while it is in the first-level cache."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import REASSOCIATE, compiled, inner
from minidl.kernels.jit.eligible import contiguous
from minidl.kernels.jit.rows import copy
from minidl.kernels.jit.summation import BLOCK, add_column_products, add_columns, mean_of, sum_of_squares
from minidl.kernels.jit.xhat import write_xhat
from minidl.kernels.parallel_for import parallel_for

__all__ = ["layer_norm", "layer_norm_backward"]

SHORT = 32  # rows shorter than this are normalised LANES at a time
LANES = 64
CHUNK = 16384  # numbers of g, and of xhat, that stay in the second cache
PARTS = 16  # most sums of rows, which are added in order: the same bits in any number of threads
WORTH_A_THREAD = 1 << 17  # numbers; backward takes 140 us


def layer_norm(x: Array, weight: Array, bias: Array | None, eps: float) -> tuple[Array, Array, Array]:
    """x (rows, d), weight and bias (d,) -> out (rows, d), and mean and 1 / std (rows,)."""
    arrays = contiguous(x, weight, np.zeros_like(weight) if bias is None else bias)
    if arrays is None:
        return reference.layer_norm(x, weight, bias, eps)
    x, weight, shift = arrays
    out, mean, inverse_std = np.empty_like(x), np.empty(len(x), x.dtype), np.empty(len(x), x.dtype)
    loop = _norm_of_short_rows if x.shape[1] < SHORT else _layer_norm
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
    gradient, d = np.empty_like(g), g.shape[1]
    if d < SHORT:
        g_weight, g_bias = np.empty_like(weight), np.empty_like(weight)
        _norm_of_short_rows_backward(g, x, inverse_std, weight, gradient, g_weight, g_bias)
        return gradient, g_weight, g_bias
    sums = np.zeros((min(PARTS, -(-g.size // CHUNK)), 2, d))  # of each part: the gradients of weight and bias
    of_parts = partial(_layer_norm_backward, g, x, mean, inverse_std, weight, gradient, sums)
    parallel_for(len(sums), g.size // WORTH_A_THREAD, of_parts)
    g_weight, g_bias = sums.sum(axis=0).astype(weight.dtype)
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
    g: Any, x: Any, mean: Any, inverse_std: Any, weight: Any, gradient: Any, sums: Any, begin: int, end: int
) -> None:
    rows, d = g.shape
    real = g.dtype.type
    xhat = gradient  # stored in the memory of the gradient
    chunk = max(1, CHUNK // d)
    for part in range(begin, end):
        last = rows * (part + 1) // len(sums)
        for start in range(rows * part // len(sums), last, chunk):  # a chunk stays in the cache between the loops
            stop = min(start + chunk, last)
            for i in range(start, stop):
                write_xhat(x[i], mean[i], inverse_std[i], xhat[i])
            add_columns(g[start:stop].reshape(-1), sums[part, 1])
            add_column_products(g[start:stop].reshape(-1), xhat[start:stop].reshape(-1), sums[part, 0])
            for i in range(start, stop):
                sum_g, sum_gx = _two_sums(g[i], xhat[i], weight)
                mean_g, mean_gx = real(sum_g / d), real(sum_gx / d)
                _backward_row(g[i], weight, mean_g, mean_gx, inverse_std[i], gradient[i])


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


# ---- short rows, vectorized across rows ----

# A loop along ten numbers is too short for vector instructions. LANES rows are copied into a scratch array that holds
# the first numbers of all rows, then the second ones, and so on. Each row's first number is subtracted from the row, so
# that rounding errors are relative to the differences in a row, not to its mean.
#
# Backward sums the rows again instead of reading the stored means: a stored mean is rounded, differs from the sum / d
# that forward subtracted, and would change the last bits of xhat.


@compiled(REASSOCIATE)
def _norm_of_short_rows(x: Any, weight: Any, bias: Any, eps: float, out: Any, mean: Any, inverse_std: Any) -> None:
    rows, d = x.shape
    real = x.dtype.type
    columns = np.zeros((d, LANES), x.dtype)
    total, square = np.empty(LANES, x.dtype), np.empty(LANES, x.dtype)
    for start in range(0, rows, LANES):
        count = min(LANES, rows - start)
        _gather(x[start : start + count], columns)
        square[:] = real(0)
        _centre(columns, total)
        for j in range(d):
            _add_product(columns[j], columns[j], square)
        _invert_root(square, real(1 / d), real(eps))
        copy(square[:count], inverse_std[start : start + count])
        for i in range(count):
            mean[start + i] = x[start + i, 0] + total[i] * real(1 / d)
            for j in range(d):
                out[start + i, j] = columns[j, i] * square[i] * weight[j] + bias[j]


@compiled(REASSOCIATE)
def _norm_of_short_rows_backward(
    g: Any, x: Any, inverse_std: Any, weight: Any, gradient: Any, g_weight: Any, g_bias: Any
) -> None:
    rows, d = g.shape
    real = g.dtype.type
    columns_g, columns_x = np.zeros((d, LANES), g.dtype), np.zeros((d, LANES), g.dtype)
    mean_g, mean_gx, inverse = np.empty(LANES, g.dtype), np.empty(LANES, g.dtype), np.zeros(LANES, g.dtype)
    total_weight, total_bias = np.zeros(d), np.zeros(d)
    for start in range(0, rows, LANES):
        count = min(LANES, rows - start)
        if count < LANES:
            columns_g[:] = real(0)
            columns_x[:] = real(0)
        for i in range(count):
            for j in range(d):
                columns_g[j, i] = g[start + i, j]
        _gather(x[start : start + count], columns_x)
        _centre(columns_x, mean_gx)
        copy(inverse_std[start : start + count], inverse[:count])
        mean_g[:] = real(0)
        mean_gx[:] = real(0)
        for j in range(d):
            _multiply(columns_x[j], inverse)
            of_bias, of_weight = _backward_sums(columns_g[j], columns_x[j], weight[j] / real(d), mean_g, mean_gx)
            total_bias[j] += of_bias
            total_weight[j] += of_weight
        for i in range(count):
            for j in range(d):
                centred = columns_g[j, i] * weight[j] - mean_g[i] - columns_x[j, i] * mean_gx[i]
                gradient[start + i, j] = centred * inverse[i]
    copy(total_weight, g_weight)
    copy(total_bias, g_bias)


@inner()
def _centre(columns: Any, total: Any) -> None:
    """Subtract each row's mean; `total` gets the row's sum."""
    d = columns.shape[0]
    total[:] = columns.dtype.type(0)
    for j in range(d):
        _add(columns[j], total)
    for j in range(d):
        _subtract(columns[j], total, columns.dtype.type(1 / d))


@inner()
def _gather(rows: Any, columns: Any) -> None:
    """Copy the rows to columns, minus each row's first number."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            columns[j, i] = rows[i, j] - rows[i, 0]


@inner(REASSOCIATE)
def _add(column: Any, total: Any) -> None:
    for i in range(LANES):
        total[i] += column[i]


@inner(REASSOCIATE)
def _subtract(column: Any, total: Any, factor: Any) -> None:
    for i in range(LANES):
        column[i] -= total[i] * factor


@inner(REASSOCIATE)
def _multiply(column: Any, factor: Any) -> None:
    for i in range(LANES):
        column[i] *= factor[i]


@inner(REASSOCIATE)
def _add_product(a: Any, b: Any, total: Any) -> None:
    for i in range(LANES):
        total[i] += a[i] * b[i]


@inner(REASSOCIATE)
def _invert_root(square: Any, factor: Any, eps: Any) -> None:
    for i in range(LANES):
        square[i] = square.dtype.type(1) / np.sqrt(square[i] * factor + eps)


@inner(REASSOCIATE)
def _backward_sums(g: Any, xhat: Any, factor: Any, mean_g: Any, mean_gx: Any) -> Any:
    sum_g, sum_gx = g.dtype.type(0), g.dtype.type(0)
    for i in range(LANES):
        product = g[i] * xhat[i]
        mean_g[i] += g[i] * factor
        mean_gx[i] += product * factor
        sum_g += g[i]
        sum_gx += product
    return np.float64(sum_g), np.float64(sum_gx)
