"""Batch norm with as few passes over memory as the data dependences allow.

The m numbers of one sample and channel are adjacent in memory. If they are many (images), the loops run along them. If
they are few (features; images of 2 x 2), the loops run along whole samples, c m numbers, or along several samples if
these are short too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import CONTRACT, REASSOCIATE, compiled, inner
from minidl.kernels.jit.eligible import contiguous
from minidl.kernels.jit.summation import add_column_products, add_columns, mean_of, sum_of, sum_of_squares
from minidl.kernels.jit.xhat import sum_of_products_with_xhat, xhat_of
from minidl.kernels.parallel_for import parallel_for

__all__ = ["batch_norm", "batch_norm_backward", "channel_statistics"]

FEW = 64  # numbers of a channel that are not worth a loop
U = np.uint64
WIDTH = 256  # samples shorter than this are read several at a time
WORTH_A_THREAD = 1 << 19  # numbers; to normalize them takes 160 us, their statistics 220 us, backward 400 us


def channel_statistics(x: Array) -> tuple[Array, Array]:
    """x (n, c, ...) -> mean and (biased) variance of every channel, both (c,)."""
    arrays = contiguous(x)
    if arrays is None:
        return reference.channel_statistics(x)
    (x,) = arrays
    mean, var = np.empty(x.shape[1], dtype=x.dtype), np.empty(x.shape[1], dtype=x.dtype)
    planes = _planes(x)
    if planes.shape[2] < FEW:
        _statistics_of_samples(x.reshape(-1), planes.shape[2], _together(planes), mean, var)
    else:
        totals = np.zeros((x.shape[1], 2))

        def of_channels(begin: int, end: int) -> None:
            _channel_statistics(planes, begin, totals[begin:end], mean[begin:end], var[begin:end])

        parallel_for(x.shape[1], x.size // WORTH_A_THREAD, of_channels)
    return mean, var


def batch_norm(x: Array, mean: Array, var: Array, weight: Array, bias: Array, eps: float) -> tuple[Array, Array]:
    """-> out, of x's shape, and 1 / std (c,)."""
    arrays = contiguous(x, mean, var, weight, bias)
    if arrays is None:
        return reference.batch_norm(x, mean, var, weight, bias, eps)
    x, mean, var, weight, bias = arrays
    inverse_std = 1 / np.sqrt(var + x.dtype.type(eps))
    planes = _planes(x)
    if planes.shape[2] >= FEW:
        return normalize(x, mean, inverse_std, weight, bias), inverse_std
    out = np.empty_like(x)
    flat = x.reshape(-1), out.reshape(-1)
    _normalize_samples(*flat, planes.shape[2], _together(planes), mean, inverse_std, weight, bias)
    return out, inverse_std


def normalize(x: Array, mean: Array, inverse_std: Array, weight: Array, bias: Array) -> Array:
    """x (n, c, ...) and values per channel, (c,) or (1, c, 1, ...) -> weight xhat + bias."""
    out, planes = np.empty(x.shape, x.dtype), _planes(x)
    rows, results = np.stack([row.reshape(-1) for row in (mean, inverse_std, weight, bias)]), _planes(out)

    def of_samples(begin: int, end: int) -> None:
        _normalize(planes[begin:end], rows, results[begin:end])

    parallel_for(len(x), x.size // WORTH_A_THREAD, of_samples)
    return out


def batch_norm_backward(
    g: Array, x: Array, mean: Array, inverse_std: Array, weight: Array, training: bool
) -> tuple[Array, Array, Array]:
    """-> the gradients with respect to x, weight and bias. Without training, mean and std are constants."""
    arrays = contiguous(g, x, mean, inverse_std, weight)
    if arrays is None:
        return reference.batch_norm_backward(g, x, mean, inverse_std, weight, training)
    g, x, mean, inverse_std, weight = arrays
    planes = _planes(g)
    if planes.shape[2] >= FEW:
        g_weight, g_bias, mean_gx, mean_g = channel_gradients(g, x, mean, inverse_std, training)
        return normalize_backward(g, x, mean, inverse_std, weight, mean_gx, mean_g), g_weight, g_bias
    gradient, g_weight, g_bias = np.empty_like(g), np.empty_like(weight), np.empty_like(weight)
    flat = g.reshape(-1), x.reshape(-1), gradient.reshape(-1)
    _normalize_samples_backward(
        *flat, planes.shape[2], _together(planes), mean, inverse_std, weight, training, g_weight, g_bias
    )
    return gradient, g_weight, g_bias


def channel_gradients(
    g: Array, x: Array, mean: Array, inverse_std: Array, training: bool
) -> tuple[Array, Array, Array, Array]:
    """-> of every channel: the sums of g xhat and of g, and in training their means, otherwise 0, all (c,)."""
    planes, others = _planes(g), _planes(x)
    totals, results = np.zeros((2, g.shape[1])), np.empty((4, g.shape[1]), g.dtype)

    def of_channels(begin: int, end: int) -> None:
        _channel_gradients(planes, others, begin, mean[begin:end], inverse_std[begin:end], training, totals, results)

    parallel_for(g.shape[1], g.size // WORTH_A_THREAD, of_channels)
    return results[0], results[1], results[2], results[3]


def normalize_backward(
    g: Array, x: Array, mean: Array, inverse_std: Array, weight: Array, mean_gx: Array, mean_g: Array
) -> Array:
    """-> the gradient with respect to x, from the means that `channel_gradients` returns."""
    gradient, planes, others = np.empty(g.shape, g.dtype), _planes(g), _planes(x)
    rows = np.stack([row.reshape(-1) for row in (mean, inverse_std, weight, mean_gx, mean_g)])
    results = _planes(gradient)

    def of_samples(begin: int, end: int) -> None:
        _normalize_backward(planes[begin:end], others[begin:end], rows, results[begin:end])

    parallel_for(len(x), x.size // WORTH_A_THREAD, of_samples)
    return gradient


def _planes(x: Array) -> Array:
    """(n, c, ...) -> (n, c, m), with the m numbers of one sample and channel adjacent in memory."""
    return np.ascontiguousarray(x).reshape(x.shape[0], x.shape[1], -1)


def _together(planes: Array) -> int:
    """Return the number of samples that are read as one row."""
    n, channels, m = planes.shape
    return max(1, min(WIDTH // (channels * m), n // 8))


# ---- loops along a channel ----

# Where channels are shared among threads, those from `first` on are given here. Samples come first in every loop, since
# that is the order of memory: statistics of 64 images with 64 channels of 8x8 took 0.36 ms channel by channel and take
# 0.18 ms (one core with AVX2).


@compiled(REASSOCIATE)
def _channel_statistics(x: Any, first: int, totals: Any, mean: Any, var: Any) -> None:
    # Mean and sum of squared deviations of each plane, while it is in the first cache, merged in float64. Source: Chan,
    # Golub and LeVeque, Algorithms for Computing the Sample Variance, The American Statistician 37 (1983), eq. 1.5.
    n, m = x.shape[0], x.shape[2]
    for i in range(n):
        for c in range(mean.size):
            plane_mean = mean_of(x[i, first + c])
            squares = sum_of_squares(x[i, first + c], plane_mean)
            delta = plane_mean - totals[c, 0]
            totals[c, 0] += delta / (i + 1)
            totals[c, 1] += squares + delta * delta * m * i / (i + 1)
    for c in range(mean.size):
        mean[c], var[c] = totals[c, 0], totals[c, 1] / (n * m)


@inner(CONTRACT)
def normalized(x: Any, mean: Any, inverse_std: Any, weight: Any, bias: Any) -> Any:
    """Normalise one number; the loops of `minidl.compiler` call this too, so that they give the same bits."""
    return (x - mean) * (inverse_std * weight) + bias


@compiled()
def _normalize(x: Any, rows: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        for c in range(x.shape[1]):
            m, s, w, b = rows[0, c], rows[1, c], rows[2, c], rows[3, c]
            for j in range(x.shape[2]):
                out[i, c, j] = normalized(x[i, c, j], m, s, w, b)


@compiled(REASSOCIATE)
def _channel_gradients(
    g: Any, x: Any, first: int, mean: Any, inverse_std: Any, training: bool, totals: Any, results: Any
) -> None:
    n, m = g.shape[0], g.shape[2]
    for i in range(n):
        for c in range(mean.size):
            totals[1, first + c] += sum_of(g[i, first + c])
            totals[0, first + c] += sum_of_products_with_xhat(g[i, first + c], x[i, first + c], mean[c], inverse_std[c])
    for c in range(mean.size):
        for k in range(2):
            results[k, first + c] = totals[k, first + c]
            results[2 + k, first + c] = totals[k, first + c] / (n * m) if training else 0.0


@inner(CONTRACT)
def normalized_backward(g: Any, x: Any, mean: Any, inverse_std: Any, weight: Any, mean_gx: Any, mean_g: Any) -> Any:
    """The gradient with respect to one number."""
    return (g - mean_g - xhat_of(x, mean, inverse_std) * mean_gx) * (inverse_std * weight)


@compiled()
def _normalize_backward(g: Any, x: Any, rows: Any, gradient: Any) -> None:
    for i in range(g.shape[0]):
        for c in range(g.shape[1]):
            m, s, w, a, b = rows[0, c], rows[1, c], rows[2, c], rows[3, c], rows[4, c]
            for j in range(g.shape[2]):
                gradient[i, c, j] = normalized_backward(g[i, c, j], x[i, c, j], m, s, w, a, b)


# ---- loops along rows of one or more whole samples ----

# A row has `together` samples of c channels of m numbers. All arrays are flat; the last row may have fewer samples.
# Values per channel are expanded to a row once; sums are accumulated as a row in float64, then summed by channel.


@compiled(REASSOCIATE)
def _statistics_of_samples(x: Any, m: int, together: int, mean: Any, var: Any) -> None:
    """-> mean and (biased) variance of every channel, both (c,). Two passes, since the second needs the mean."""
    channels = mean.size
    width = together * channels * m
    count = x.size // channels
    total = _zeros(width)
    add_columns(x, total)
    sums = _by_channel(total, channels, m)
    for c in range(channels):
        mean[c] = sums[c] / count
    centre = _row(mean, m, together)
    total_squares = _zeros(width)
    _add_squares(x, centre, total_squares)
    squares = _by_channel(total_squares, channels, m)
    for c in range(channels):
        rounded = sums[c] / count - np.float64(mean[c])  # the squares are of deviations from the rounded mean
        var[c] = max(squares[c] / count - rounded * rounded, 0.0)


@compiled(REASSOCIATE)
def _normalize_samples(
    x: Any, out: Any, m: int, together: int, mean: Any, inverse_std: Any, weight: Any, bias: Any
) -> None:
    a, s, w, b = (
        _row(mean, m, together), _row(inverse_std, m, together), _row(weight, m, together), _row(bias, m, together)
    )  # fmt: skip
    for start in range(0, x.size, a.size):
        stop = min(start + a.size, x.size)
        _scale_row(x[start:stop], a, s, w, b, out[start:stop])


@inner(REASSOCIATE)
def _scale_row(x: Any, mean: Any, inverse_std: Any, weight: Any, bias: Any, out: Any) -> None:
    for j in range(x.size):
        out[j] = (x[j] - mean[j]) * inverse_std[j] * weight[j] + bias[j]


@compiled(REASSOCIATE)
def _normalize_samples_backward(
    g: Any, x: Any, gradient: Any, m: int, together: int, mean: Any, inverse_std: Any, weight: Any, training: bool,
    g_weight: Any, g_bias: Any,
) -> None:  # fmt: skip
    channels = weight.size
    width = together * channels * m
    total_g, total_gx = _zeros(width), _zeros(width)
    add_columns(g, total_g)
    xhat = gradient  # written where its gradient will be
    centre, inverse = _row(mean, m, together), _row(inverse_std, m, together)
    for start in range(0, g.size, 4 * width):  # four rows, which are added while they are in the cache
        stop = min(start + 4 * width, g.size)
        for row in range(start, stop, width):
            end = min(row + width, stop)
            _normalize_row(x[row:end], centre, inverse, xhat[row:end])
        add_column_products(g[start:stop], xhat[start:stop], total_gx)
    sums_g, sums_gx = _by_channel(total_g, channels, m), _by_channel(total_gx, channels, m)
    means_g, means_gx, scale = (
        np.empty(channels, weight.dtype), np.empty(channels, weight.dtype), np.empty(channels, weight.dtype)
    )  # fmt: skip
    count = g.size // channels
    for c in range(channels):
        g_bias[c], g_weight[c] = sums_g[c], sums_gx[c]
        scale[c] = weight[c] * inverse_std[c]
        means_g[c] = sums_g[c] / count if training else 0.0
        means_gx[c] = sums_gx[c] / count if training else 0.0
    mean_g, mean_gx, factor = _row(means_g, m, together), _row(means_gx, m, together), _row(scale, m, together)
    for start in range(0, g.size, width):
        stop = min(start + width, g.size)
        _backward_row(g[start:stop], mean_g, mean_gx, factor, gradient[start:stop])


@inner(REASSOCIATE)
def _normalize_row(x: Any, mean: Any, inverse_std: Any, xhat: Any) -> None:
    for j in range(x.size):
        xhat[j] = xhat_of(x[j], mean[j], inverse_std[j])


@inner(REASSOCIATE)
def _backward_row(g: Any, mean_g: Any, mean_gx: Any, factor: Any, gradient: Any) -> None:
    """Turn xhat in `gradient` into the gradient; under two names, LLVM would not vectorise the loop."""
    for j in range(g.size):
        gradient[j] = (g[j] - mean_g[j] - gradient[j] * mean_gx[j]) * factor[j]


@inner(allocates=True)
def _zeros(count: int) -> Any:
    """As np.zeros, which takes numba 0.8 s to compile."""
    numbers = np.empty(count, np.float64)
    for k in range(count):
        numbers[k] = 0.0
    return numbers


@inner(allocates=True)
def _row(of_channels: Any, m: int, together: int) -> Any:
    """Expand the channels' numbers to a row."""
    row = np.empty(together * of_channels.size * m, of_channels.dtype)
    k = 0
    for _ in range(together):
        for c in range(of_channels.size):
            for _ in range(m):
                row[k] = of_channels[c]
                k += 1
    return row


@inner(allocates=True)
def _by_channel(row: Any, channels: int, m: int) -> Any:
    """Sum a row's numbers by channel."""
    sums = _zeros(channels)
    for start in range(0, row.size, channels * m):
        for c in range(channels):
            for j in range(m):
                sums[c] += row[start + c * m + j]
    return sums


@inner(REASSOCIATE)
def _add_squares(x: Any, centre: Any, total: Any) -> None:
    """Add the squared deviations from `centre`, row by row: four rows in their own type, then in float64."""
    width = total.size
    whole = x.size // (4 * width) * 4 * width
    for start in range(0, whole, 4 * width):
        _add_four_squares(x, start, centre, total)
    for start in range(whole, x.size, width):
        for j in range(min(width, x.size - start)):
            e = x[U(start) + U(j)] - centre[j]
            total[j] += e * e


@inner(REASSOCIATE)
def _add_four_squares(x: Any, start: int, centre: Any, total: Any) -> None:
    step = U(total.size)
    for j in range(total.size):
        a, m = U(start) + U(j), centre[j]
        e, f, g, h = x[a] - m, x[a + step] - m, x[a + U(2) * step] - m, x[a + U(3) * step] - m
        total[j] += (e * e + f * f) + (g * g + h * h)
