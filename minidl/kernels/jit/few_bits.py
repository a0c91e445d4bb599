"""Compressors that send few bits for each number: scales, symbols, and the numbers that they stand for.

Sums have the bits of numpy's, since they consist of many partial sums, each of which is added up in order: vector
instructions add to several partial sums at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels import Array
from minidl.kernels.jit.compiled import compiled, inner
from minidl.kernels.jit.function_attributes import never_inlined, wide_vectors

LANES = 64  # as in minidl.compress.quantizer
TRITS = 5  # symbols in a byte in base 3
DIGITS = (np.arange(256)[:, None] // 3 ** np.arange(TRITS) % 3).astype(np.uint8)


def partial_sums(flat: Array, width: int, squared: bool) -> Array:
    sums = np.zeros((-(-flat.size // width), min(width, LANES)))
    _add_buckets(flat, width, squared, sums)
    return sums


@compiled()
def _add_buckets(flat: Any, width: int, squared: bool, sums: Any) -> None:
    lanes = sums.shape[1]
    for bucket in range(sums.shape[0]):
        end = min((bucket + 1) * width, flat.size)
        for start in range(bucket * width, end, lanes):
            _add(flat[start : min(start + lanes, end)], squared, sums[bucket])


@inner()
def _add(numbers: Any, squared: bool, sums: Any) -> None:
    wide_vectors()
    for j in range(numbers.size):
        x = np.float64(numbers[j])
        sums[j] += x * x if squared else abs(x)


def sums_by_sign(flat: Array, period: int) -> tuple[Array, Array]:
    sums, below = np.zeros((2, period)), np.zeros(period, np.int64)
    _add_by_sign(flat, sums[0], sums[1], below)
    return sums, below


@compiled()
def _add_by_sign(flat: Any, above: Any, below: Any, counts: Any) -> None:
    for start in range(0, flat.size, counts.size):
        _add_row(flat[start : min(start + counts.size, flat.size)], above, below, counts)


@inner()
def _add_row(numbers: Any, above: Any, below: Any, counts: Any) -> None:
    never_inlined()
    wide_vectors()
    for j in range(numbers.size):
        x = np.float64(numbers[j])
        is_below = x < 0
        above[j] += 0.0 if is_below else x
        below[j] += x if is_below else 0.0
        counts[j] += is_below


def levels_at_random(flat: Array, steps: Array, width: int, levels: int, chances: Array) -> Array:
    symbols = np.empty(flat.size, np.uint8 if levels <= 127 else np.uint32)
    _round(flat, steps, width, levels, chances, symbols)
    return symbols


@compiled()
def _round(flat: Any, steps: Any, width: int, levels: int, chances: Any, symbols: Any) -> None:
    for bucket in range(steps.size):
        start, end = bucket * width, min((bucket + 1) * width, flat.size)
        _round_bucket(flat[start:end], steps[bucket], levels, chances[start:end], symbols[start:end])


@inner()
def _round_bucket(numbers: Any, step: float, levels: int, chances: Any, symbols: Any) -> None:
    never_inlined()
    wide_vectors()
    for i in range(numbers.size):
        x = np.float64(numbers[i])
        ratio = abs(x) * step
        level = min(np.floor((ratio if ratio == ratio else 0.0) + chances[i]), np.float64(levels))
        symbols[i] = np.int64(np.float64(levels) + (-level if x < 0 else level))


def numbers_of_levels(symbols: Array, scales: Array, width: int, levels: int) -> Array:
    out = np.empty(symbols.size, scales.dtype)
    fractions = (np.arange(256.0) - levels) / levels  # of all symbols, which are bytes here: looked up, not divided
    _scale(symbols, scales, width, fractions, out)
    return out


@compiled()
def _scale(symbols: Any, scales: Any, width: int, fractions: Any, out: Any) -> None:
    for bucket in range(scales.size):
        start, end = bucket * width, min((bucket + 1) * width, out.size)
        _scale_bucket(symbols[start:end], np.float64(scales[bucket]), fractions, out[start:end])


@inner()
def _scale_bucket(symbols: Any, scale: float, fractions: Any, out: Any) -> None:
    never_inlined()
    wide_vectors()
    for i in range(out.size):
        out[i] = scale * fractions[symbols[i]]


def two_values(symbols: Array, values: Array) -> Array:
    out = np.empty(symbols.size, values.dtype)
    _choose(symbols.view(np.uint8), values[0], values[1], out)
    return out


@compiled()
def _choose(symbols: Any, zero: Any, one: Any, out: Any) -> None:
    wide_vectors()
    if zero.size == 1:
        zero_, one_ = zero[0], one[0]
        for i in range(out.size):
            out[i] = one_ if symbols[i] else zero_
    else:
        for start in range(0, out.size, zero.size):
            _choose_row(symbols[start : start + zero.size], zero, one, out[start : start + zero.size])


@inner()
def _choose_row(symbols: Any, zero: Any, one: Any, out: Any) -> None:
    never_inlined()
    wide_vectors()
    for j in range(out.size):
        a, b = zero[j], one[j]
        out[j] = b if symbols[j] else a


def pack_pairs(numbers: Array) -> Array:
    out = np.zeros(-(-numbers.size // 2), np.uint8)
    _pack_pairs(numbers, out)
    if numbers.size % 2:
        out[-1] = numbers[-1] << 4
    return out


@compiled()
def _pack_pairs(numbers: Any, out: Any) -> None:
    wide_vectors()
    for i in range(numbers.size // 2):
        out[i] = numbers[2 * i] << 4 | numbers[2 * i + 1]


def unpack_pairs(packed: Array, count: int) -> Array:
    out = np.empty(packed.size * 2, np.uint8)
    _unpack_pairs(np.require(packed, requirements="W"), out)  # numba compiles read-only arrays apart
    return out[:count]


@compiled()
def _unpack_pairs(packed: Any, out: Any) -> None:
    wide_vectors()
    for i in range(packed.size):
        out[2 * i], out[2 * i + 1] = packed[i] >> 4, packed[i] & 15


def pack_trits(symbols: Array) -> Array:
    padded = np.zeros(-(-symbols.size // TRITS) * TRITS, np.uint8)
    padded[: symbols.size] = symbols
    out = np.empty(padded.size // TRITS, np.uint8)
    _pack_trits(padded, out)
    return out


@compiled()
def _pack_trits(symbols: Any, out: Any) -> None:
    wide_vectors()
    three, nine = np.uint8(3), np.uint8(9)
    for i in range(out.size):
        at = TRITS * i
        high = symbols[at + 2] + three * symbols[at + 3] + nine * symbols[at + 4]
        out[i] = symbols[at] + three * symbols[at + 1] + nine * high


def unpack_trits(packed: Array, count: int) -> Array:
    out = np.empty(packed.size * TRITS, np.uint8)
    _unpack_trits(np.require(packed, requirements="W"), DIGITS, out)  # as in unpack_pairs
    return out[:count]


@compiled()
def _unpack_trits(packed: Any, digits: Any, out: Any) -> None:
    for i in range(packed.size):
        row, at = digits[packed[i]], TRITS * i
        out[at], out[at + 1], out[at + 2], out[at + 3], out[at + 4] = row[0], row[1], row[2], row[3], row[4]
