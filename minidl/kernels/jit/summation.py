"""Loops that sum: blocks of numbers in their own type, the sums of blocks in float64.

n numbers, added one after another in float32, lose up to n times the rounding error of one addition: 1,000,000 times
0.1 gives 100,958. In blocks the error is that of a few additions for any n, and loops are as fast as in float32.
Source: Higham, The Accuracy of Floating Point Summation, SIAM Journal on Scientific Computing 14 (1993), section 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels.jit.compiled import REASSOCIATE, compiled, inner

BLOCK = 512  # numbers of a row that are added in their own type, 32 or more sums at a time
TILE = 2048  # columns that are added at a time: their sums in float64 stay in the first cache
WIDTH = 64  # rows shorter than this are read several at a time, so that vector instructions have work


@compiled(REASSOCIATE)
def sum_rows_each(x: Any, divisor: float, out: Any) -> None:
    """x (a, r) -> out (a,): the sum of each row, divided by `divisor`."""
    rows, length = x.shape
    if length < 32:  # too short for a call
        for i in range(rows):
            partial = x.dtype.type(0)
            for j in range(length):
                partial += x[i, j]
            out[i] = np.float64(partial) / divisor
    else:
        for i in range(rows):
            out[i] = sum_of(x[i]) / divisor


@inner(REASSOCIATE)
def sum_of(numbers: Any) -> Any:
    """The sum of a vector, in float64."""
    total = 0.0
    for start in range(0, numbers.size, BLOCK):
        total += _sum_of_block(numbers[start : min(start + BLOCK, numbers.size)])
    return total


@inner(REASSOCIATE)
def _sum_of_block(numbers: Any) -> Any:
    total = numbers.dtype.type(0)
    for j in range(numbers.size):
        total += numbers[j]
    return np.float64(total)


@inner(REASSOCIATE)
def mean_of(numbers: Any) -> Any:
    """The mean of a vector, in float64, from the sum of differences from its first number, which rounds less."""
    total, first = 0.0, numbers[0]
    for start in range(0, numbers.size, BLOCK):
        total += _differences_of_block(numbers[start : min(start + BLOCK, numbers.size)], first)
    return first + total / numbers.size


@inner(REASSOCIATE)
def _differences_of_block(numbers: Any, first: Any) -> Any:
    total = numbers.dtype.type(0)
    for j in range(numbers.size):
        total += numbers[j] - first
    return np.float64(total)


@inner(REASSOCIATE)
def sum_of_squares(numbers: Any, centre: float) -> Any:
    """The sum of the squared differences from `centre`, in float64."""
    total = 0.0
    rounded = numbers.dtype.type(centre)
    for start in range(0, numbers.size, BLOCK):
        total += _squares_of_block(numbers[start : min(start + BLOCK, numbers.size)], rounded)
    return total


@inner(REASSOCIATE)
def _squares_of_block(numbers: Any, centre: Any) -> Any:
    total = numbers.dtype.type(0)
    for j in range(numbers.size):
        total += (numbers[j] - centre) * (numbers[j] - centre)
    return np.float64(total)


@compiled(REASSOCIATE)
def sum_rows_together(x: Any, length: int, divisor: float, out: Any) -> None:
    """x (a, r * length): a matrices of r rows -> out (a, length): the sum of the rows of each, divided by `divisor`."""
    matrices, size = x.shape
    rows = size // length
    together = max(1, min(WIDTH // length, rows // 8))  # short rows that are read as one
    width = together * length
    tile = min(width, TILE)
    total = np.zeros(tile, np.float64)
    whole = rows // together
    for i in range(matrices):
        matrix = x[i]
        for start in range(0, width, tile):
            count = min(tile, width - start)
            total[:count] = 0.0
            for row in range(0, whole - 7, 8):
                _add_eight(matrix, row * width + start, width, total, count)
            for row in range(whole - whole % 8, whole):
                _add_one(matrix, row * width + start, total, count)
            if together == 1:
                for j in range(count):
                    out[i, start + j] = total[j] / divisor
        if together > 1:
            _add_one(matrix, whole * width, total, size - whole * width)  # the rows that are left
            for k in range(1, together):
                for j in range(length):
                    total[j] += total[k * length + j]
            for j in range(length):
                out[i, j] = total[j] / divisor


@inner(REASSOCIATE)
def add_columns(numbers: Any, total: Any) -> None:
    """Add numbers, read as rows as long as `total` (float64), to it; the last row may be shorter."""
    width = total.size
    rows = numbers.size // width
    for row in range(0, rows - 7, 8):
        _add_eight(numbers, row * width, width, total, width)
    for row in range(rows - rows % 8, rows):
        _add_one(numbers, row * width, total, width)
    _add_one(numbers, rows * width, total, numbers.size - rows * width)


@inner(REASSOCIATE)
def add_column_products(x: Any, y: Any, total: Any) -> None:
    """Add x times y, both read as rows as long as `total` (float64), to it; the last row may be shorter."""
    width = total.size
    whole = x.size // (4 * width) * 4 * width
    for start in range(0, whole, 4 * width):
        second, third, fourth, end = start + width, start + 2 * width, start + 3 * width, start + 4 * width
        _add_four_products(
            x[start:second], x[second:third], x[third:fourth], x[fourth:end],
            y[start:second], y[second:third], y[third:fourth], y[fourth:end], total,
        )  # fmt: skip
    for start in range(whole, x.size, width):
        stop = min(start + width, x.size)
        row, other = x[start:stop], y[start:stop]
        for j in range(row.size):
            total[j] += row[j] * other[j]


@inner(REASSOCIATE)
def _add_four_products(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, total: Any) -> None:
    for j in range(total.size):
        total[j] += (a[j] * e[j] + b[j] * f[j]) + (c[j] * g[j] + d[j] * h[j])


@inner(REASSOCIATE)
def _add_eight(numbers: Any, start: int, step: int, total: Any, count: int) -> None:
    a = numbers[start : start + count]
    b = numbers[start + step : start + step + count]
    c = numbers[start + 2 * step : start + 2 * step + count]
    d = numbers[start + 3 * step : start + 3 * step + count]
    e = numbers[start + 4 * step : start + 4 * step + count]
    f = numbers[start + 5 * step : start + 5 * step + count]
    g = numbers[start + 6 * step : start + 6 * step + count]
    h = numbers[start + 7 * step : start + 7 * step + count]
    for j in range(count):
        total[j] += ((a[j] + b[j]) + (c[j] + d[j])) + ((e[j] + f[j]) + (g[j] + h[j]))


@inner(REASSOCIATE)
def _add_one(numbers: Any, start: int, total: Any, count: int) -> None:
    row = numbers[start : start + count]
    for j in range(count):
        total[j] += row[j]
