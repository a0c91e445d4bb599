"""Batch norm of samples with few numbers per channel: loops along rows of one or more whole samples.

A row has `together` samples of c channels of m numbers. All arrays are flat; the last row may have fewer samples.
Values per channel are expanded to a row once; sums are accumulated as a row in float64, then summed by channel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels.jit.compiled import REASSOCIATE, compiled, inner
from minidl.kernels.jit.summation import add_column_products, add_columns
from minidl.kernels.jit.xhat import xhat_of


@compiled(REASSOCIATE)
def statistics_of_samples(x: Any, m: int, together: int, mean: Any, var: Any) -> None:
    """-> mean and (biased) variance of every channel, both (c,). Two passes, since the second needs the mean."""
    channels = mean.size
    width = together * channels * m
    count = x.size // channels
    total = np.zeros(width)
    add_columns(x, total)
    sums = _by_channel(total, channels, m)
    for c in range(channels):
        mean[c] = sums[c] / count
    centre = _row(mean, m, together)
    total[:] = 0.0
    _add_squares(x, centre, total)
    squares = _by_channel(total, channels, m)
    for c in range(channels):
        rounded = sums[c] / count - np.float64(mean[c])  # the squares are of deviations from the rounded mean
        var[c] = max(squares[c] / count - rounded * rounded, 0.0)


@compiled(REASSOCIATE)
def normalize_samples(
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
def normalize_samples_backward(
    g: Any, x: Any, gradient: Any, m: int, together: int, mean: Any, inverse_std: Any, weight: Any, training: bool,
    g_weight: Any, g_bias: Any,
) -> None:  # fmt: skip
    channels = weight.size
    width = together * channels * m
    total_g, total_gx = np.zeros(width), np.zeros(width)
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
    means_g, means_gx = np.zeros_like(weight), np.zeros_like(weight)
    scale = np.empty_like(weight)
    count = g.size // channels
    for c in range(channels):
        g_bias[c], g_weight[c] = sums_g[c], sums_gx[c]
        scale[c] = weight[c] * inverse_std[c]
        if training:
            means_g[c], means_gx[c] = sums_g[c] / count, sums_gx[c] / count
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


@inner()
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


@inner()
def _by_channel(row: Any, channels: int, m: int) -> Any:
    """Sum a row's numbers by channel."""
    sums = np.zeros(channels)
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
        _add_four_squares(
            x[start : start + width], x[start + width : start + 2 * width], x[start + 2 * width : start + 3 * width],
            x[start + 3 * width : start + 4 * width], centre, total,
        )  # fmt: skip
    for start in range(whole, x.size, width):
        row = x[start : min(start + width, x.size)]
        for j in range(row.size):
            total[j] += (row[j] - centre[j]) * (row[j] - centre[j])


@inner(REASSOCIATE)
def _add_four_squares(a: Any, b: Any, c: Any, d: Any, centre: Any, total: Any) -> None:
    for j in range(total.size):
        e, f, g, h = a[j] - centre[j], b[j] - centre[j], c[j] - centre[j], d[j] - centre[j]
        total[j] += (e * e + f * f) + (g * g + h * h)
