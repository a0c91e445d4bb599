"""Sums for the scales of quantizers, with the bits of numpy's: many partial sums, each added up in order, in float64.

Vector instructions add to several partial sums at a time, so their width does not change the order of additions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels import Array
from minidl.kernels.jit.compiled import compiled, inner
from minidl.kernels.jit.eligible import eligible
from minidl.kernels.jit.function_attributes import never_inlined, wide_vectors

LANES = 64  # as in minidl.compress.quantizer
ROWS = 4  # rows that are added before the sums are stored again


def partial_sums(flat: Array, width: int, squared: bool) -> Array:
    if not eligible(flat):
        return NotImplemented
    sums = np.zeros((-(-flat.size // width), min(width, LANES)))
    _add_buckets(flat, width, bool(squared), sums)
    return sums


def sums_by_sign(flat: Array, period: int) -> tuple[Array, Array]:
    if not eligible(flat):
        return NotImplemented
    sums, below = np.zeros((2, period)), np.zeros(period, np.int64)
    _add_by_sign(flat, sums[0], sums[1], below)
    return sums, below


@compiled()
def _add_buckets(flat: Any, width: int, squared: bool, sums: Any) -> None:
    lanes = sums.shape[1]
    for bucket in range(sums.shape[0]):
        numbers = flat[bucket * width : min((bucket + 1) * width, flat.size)]
        for start in range(0, numbers.size, lanes):
            _add(numbers[start : min(start + lanes, numbers.size)], squared, sums[bucket])


@inner()
def _add(numbers: Any, squared: bool, sums: Any) -> None:
    wide_vectors()
    if squared:
        for j in range(numbers.size):
            x = np.float64(numbers[j])
            sums[j] += x * x
    else:
        for j in range(numbers.size):
            sums[j] += abs(np.float64(numbers[j]))


@compiled()
def _add_by_sign(flat: Any, above: Any, below: Any, counts: Any) -> None:
    period = counts.size
    rows = flat.size // period
    fours = rows - rows % ROWS
    for row in range(0, fours, ROWS):
        _add_rows(flat[row * period : (row + ROWS) * period], ROWS, above, below, counts)
    for start in range(fours * period, flat.size, period):
        _add_rows(flat[start : min(start + period, flat.size)], 1, above, below, counts)


@inner()
def _add_rows(numbers: Any, rows: int, above: Any, below: Any, counts: Any) -> None:
    """Add rows, one after the other; four at a time if there are as many, so that sums are loaded and stored once."""
    never_inlined()
    wide_vectors()
    length = numbers.size // rows
    if rows == ROWS:
        for j in range(length):
            a, b, c = above[j], below[j], counts[j]
            for row in range(ROWS):
                x = np.float64(numbers[row * length + j])
                is_below = x < 0
                a += 0.0 if is_below else x
                b += x if is_below else 0.0
                c += is_below
            above[j], below[j], counts[j] = a, b, c
    else:
        for j in range(length):
            x = np.float64(numbers[j])
            is_below = x < 0
            above[j] += 0.0 if is_below else x
            below[j] += x if is_below else 0.0
            counts[j] += is_below
