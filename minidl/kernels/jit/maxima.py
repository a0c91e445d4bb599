"""The loops that take maxima, and share the gradient of a maximum or minimum among the places where it stands."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels.jit.compiled import compiled, inner

WIDTH = 64  # rows shorter than this are read several at a time


@compiled()
def max_of_each_row(bits: Any, infinity: Any, most: Any, sign: Any, out: Any) -> None:
    """x (a, r) -> out (a,), both as the integers that their bits are; nan is the maximum of its row.

    infinity: the bits of inf; most: the largest integer; sign: the number of the sign bit. Where negative numbers have
    all bits but the sign inverted, the integers are in the order of the numbers. LLVM turns the maximum of integers
    into vector instructions; that of numbers it does not, because of nan.
    """
    for i in range(bits.shape[0]):
        out[i] = _max_of_bits(bits[i], infinity, most, sign)


@inner()
def _max_of_bits(bits: Any, infinity: Any, most: Any, sign: Any) -> Any:
    highest = bits.dtype.type(-most)
    for j in range(bits.size):
        number = bits[j] ^ ((bits[j] >> sign) & most)
        highest = max(highest, most if (bits[j] & most) > infinity else number)
    return highest ^ ((highest >> sign) & most)


@compiled()
def max_of_rows(x: Any, length: int, out: Any) -> None:
    """x (a, r * length): a matrices of r rows -> out (a, length): the largest number of each column."""
    matrices, size = x.shape
    together = max(1, min(WIDTH // length, size // length))
    width = together * length
    lanes = np.empty(width, x.dtype)
    for i in range(matrices):
        matrix = x[i]
        lanes[:] = matrix[:width]
        for start in range(width, size - width + 1, width):
            _take_larger(lanes, matrix[start : start + width])
        _take_larger(lanes, matrix[size - size % width :])
        for k in range(1, together):
            _take_larger(lanes[:length], lanes[k * length : (k + 1) * length])
        out[i] = lanes[:length]


@inner()
def _take_larger(lanes: Any, numbers: Any) -> None:
    for j in range(numbers.size):
        new, old = numbers[j], lanes[j]
        larger = new if new > old else old
        lanes[j] = new if new != new else larger


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
