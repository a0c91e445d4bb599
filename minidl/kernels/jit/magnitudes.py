"""Which numbers of a vector are the largest, for TopK and Threshold: two walks through memory.

A number's magnitude is compared as the whole number that its bits are without the sign: it rises with the magnitude,
and NaN is above infinity. The first walk counts the magnitudes by exponent and three bits after it, and so finds the
bin of the k-th largest. The second collects that bin and those above it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels import Array
from minidl.kernels.jit.compiled import compiled
from minidl.kernels.jit.eligible import eligible
from minidl.kernels.jit.function_attributes import wide_vectors

MANTISSA = {4: 23, 8: 52}  # bits, by the bytes of a number
TABLES = 4  # adjacent numbers are counted apart, so that no counter waits for its last addition
BLOCK = 64  # numbers that are compared together before one of them is written


def candidates(flat: Array, k: int) -> Array:
    if not eligible(flat):
        return NotImplemented
    bits, mask = _bits(flat)
    shift = bits.dtype.type(MANTISSA[flat.itemsize] - 3)
    counts = np.zeros((TABLES, (int(mask) >> int(shift)) + 1), np.int64)
    _count(bits, mask, shift, counts)
    from_the_top = np.cumsum(counts.sum(axis=0)[::-1])
    last_bin = counts.shape[1] - 1 - int(np.searchsorted(from_the_top, k))
    return _at_least(bits, mask, last_bin << int(shift))


def larger_than(flat: Array, bound: float) -> Array:
    if not eligible(flat):
        return NotImplemented
    bits, mask = _bits(flat)
    with np.errstate(over="ignore"):
        least = int(flat.dtype.type(bound).view(bits.dtype) & mask) + 1
    return _at_least(bits, mask, least)


def _bits(flat: Array) -> tuple[Array, Any]:
    """The numbers as whole numbers, and the mask that removes their signs."""
    bits = flat.view(np.uint32 if flat.itemsize == 4 else np.uint64)
    return bits, np.iinfo(bits.dtype).max >> bits.dtype.type(1)


def _at_least(bits: Array, mask: Any, least: int) -> Array:
    at = np.empty(bits.size + 1, np.uint32)
    return at[: _collect(bits, mask, bits.dtype.type(least), at)].astype(np.intp)


@compiled()
def _count(bits: Any, mask: Any, shift: Any, counts: Any) -> None:
    whole = bits.size - bits.size % TABLES
    for i in range(0, whole, TABLES):
        for table in range(TABLES):
            counts[table, (bits[i + table] & mask) >> shift] += 1
    for i in range(whole, bits.size):
        counts[0, (bits[i] & mask) >> shift] += 1


@compiled()
def _collect(bits: Any, mask: Any, least: Any, at: Any) -> int:
    """Write the places of all magnitudes from `least` on; returns their number. One place more is overwritten."""
    wide_vectors()
    found, whole = 0, bits.size - bits.size % BLOCK
    for start in range(0, whole, BLOCK):
        here = 0
        for i in range(start, start + BLOCK):
            here += (bits[i] & mask) >= least
        if here:
            for i in range(start, start + BLOCK):
                at[found] = i
                found += (bits[i] & mask) >= least
    for i in range(whole, bits.size):
        at[found] = i
        found += (bits[i] & mask) >= least
    return found
