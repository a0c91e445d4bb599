"""Loops that find maxima, and loops that distribute the gradient of a maximum or minimum among ties."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels.jit.compiled import compiled, inner
from minidl.kernels.jit.function_attributes import wide_vectors

WIDTH = 64  # rows shorter than this are read several at a time


@compiled()
def max_of_each_row(bits: Any, infinity: Any, most: Any, sign: Any, inverted: int, out: Any) -> None:
    """x (a, r) -> out (a,), both as the integers that their bits are; nan is the maximum of its row.

    infinity    bits of inf
    most        largest integer
    sign        number of the sign bit
    inverted    0; -1 for the minimum, which is the maximum of all bits inverted

    With all bits but the sign of negative numbers inverted, the integers have the order of the numbers. LLVM vectorises
    the maximum of integers; that of floating-point numbers it does not, because of nan.
    """
    wide_vectors()
    for i in range(bits.shape[0]):
        out[i] = _max_of_bits(bits[i], infinity, most, sign, bits.dtype.type(inverted))


@inner()
def _max_of_bits(bits: Any, infinity: Any, most: Any, sign: Any, inverted: Any) -> Any:
    highest = bits.dtype.type(-most)
    for j in range(bits.size):
        number = bits[j] ^ ((bits[j] >> sign) & most) ^ inverted
        highest = max(highest, most if (bits[j] & most) > infinity else number)
    if highest == most:
        return most
    highest ^= inverted
    return highest ^ ((highest >> sign) & most)


@compiled()
def max_of_rows(x: Any, length: int, sign: int, out: Any) -> None:
    """x (a, r * length): a matrices of r rows -> out (a, length): the largest number of each column.

    sign: 1, or -1 for the smallest number.
    """
    wide_vectors()
    matrices, size = x.shape
    together = max(1, min(WIDTH // length, size // length))
    width = together * length
    lanes, factor = np.empty(width, x.dtype), x.dtype.type(sign)
    for i in range(matrices):
        matrix = x[i]
        _scale(matrix, factor, lanes)
        by_fours = width + (size - width) // (4 * width) * (4 * width)
        for start in range(width, by_fours, 4 * width):
            _take_largest_of_four(lanes, matrix[start : start + 4 * width], factor)
        for start in range(by_fours, size - width + 1, width):
            _take_larger(lanes, matrix[start : start + width], factor)
        _take_larger(lanes, matrix[size - size % width :], factor)
        for k in range(1, together):
            _take_larger(lanes[:length], lanes[k * length : (k + 1) * length], x.dtype.type(1))
        _scale(lanes, factor, out[i])


@inner()
def _scale(numbers: Any, factor: Any, out: Any) -> None:
    for j in range(out.size):
        out[j] = numbers[j] * factor


@inner()
def _take_larger(lanes: Any, numbers: Any, factor: Any) -> None:
    for j in range(numbers.size):
        lanes[j] = _larger(numbers[j] * factor, lanes[j])


@inner()
def _take_largest_of_four(lanes: Any, numbers: Any, factor: Any) -> None:
    """Process four numbers per lane: lanes are read and written a fourth as often."""
    width = lanes.size
    a, b, c, d = (numbers[:width], numbers[width : 2 * width], numbers[2 * width : 3 * width], numbers[3 * width :])
    for j in range(width):
        p, q = _larger(a[j] * factor, b[j] * factor), _larger(c[j] * factor, d[j] * factor)
        lanes[j] = _larger(_larger(p, q), lanes[j])


@inner()
def _larger(new: Any, old: Any) -> Any:
    """The larger of two numbers; nan if one is."""
    return new if (new > old) | (new != new) else old


@compiled()
def share_in_each_row(g: Any, x: Any, extremum: Any, gradient: Any) -> None:
    """g, extremum (a,), x (a, r) -> gradient (a, r)."""
    rows, length = x.shape
    real = x.dtype.type
    for i in range(rows):
        ties = 0
        for j in range(length):
            ties += x[i, j] == extremum[i]
        share = g[i] / real(ties)
        for j in range(length):
            gradient[i, j] = share * real(x[i, j] == extremum[i])


@compiled()
def share_in_columns(g: Any, x: Any, extremum: Any, gradient: Any) -> None:
    """g, extremum (a, b), x (a, r, b) -> gradient (a, r, b)."""
    matrices, rows, length = x.shape
    real = x.dtype.type
    share = np.empty(length, x.dtype)
    for i in range(matrices):
        top, out = extremum[i], g[i]
        share[:] = real(0)
        for k in range(rows):
            row = x[i, k]
            for j in range(length):
                share[j] += real(row[j] == top[j])
        for j in range(length):
            share[j] = out[j] / share[j]
        for k in range(rows):
            row, into = x[i, k], gradient[i, k]
            for j in range(length):
                into[j] = share[j] * real(row[j] == top[j])
