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
U = np.uint64
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
    total = np.empty(tile, np.float64)
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
        _add_four_products(x, y, start, total)
    for start in range(whole, x.size, width):
        for j in range(min(width, x.size - start)):
            a = U(start) + U(j)
            total[j] += x[a] * y[a]


# Numbers are found by unsigned indices: slices, or signed indices, take numba twice as long to compile.


@inner(REASSOCIATE)
def _add_four_products(x: Any, y: Any, start: int, total: Any) -> None:
    step = U(total.size)
    for j in range(total.size):
        a = U(start) + U(j)
        b, c, d = a + step, a + U(2) * step, a + U(3) * step
        total[j] += (x[a] * y[a] + x[b] * y[b]) + (x[c] * y[c] + x[d] * y[d])


@inner(REASSOCIATE)
def _add_eight(numbers: Any, start: int, step: int, total: Any, count: int) -> None:
    s = U(step)
    for j in range(count):
        a, e = U(start) + U(j), U(start) + U(j) + U(4) * s
        total[j] += ((numbers[a] + numbers[a + s]) + (numbers[a + U(2) * s] + numbers[a + U(3) * s])) + (
            (numbers[e] + numbers[e + s]) + (numbers[e + U(2) * s] + numbers[e + U(3) * s])
        )


@inner(REASSOCIATE)
def _add_one(numbers: Any, start: int, total: Any, count: int) -> None:
    for j in range(count):
        total[j] += numbers[U(start) + U(j)]
