"""Which numbers of a vector are the largest, for TopK and Threshold: two walks through memory.

A number's magnitude is compared as the whole number that its bits are without the sign: it rises with the magnitude,
and NaN is above infinity. The first walk counts the magnitudes of a sample by exponent and three bits after it, which
gives a bin that probably is not above the k-th largest. The second collects all magnitudes from this bin on. If they
are fewer than k, the sample was not like the whole: then all magnitudes are counted, and collected again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels import Array
from minidl.kernels.jit.compiled import compiled
from minidl.kernels.jit.eligible import eligible
from minidl.kernels.jit.vectors import first_one, reaching, wide_vectors

MANTISSA = {4: 23, 8: 52}  # bits, by the bytes of a number
TABLES = 4  # adjacent numbers are counted apart, so that no counter waits for its last addition
BLOCK = 16  # numbers that `reaching` compares
SAMPLE, EVERY = 256, 16  # the first 256 numbers of every 16 times 256 are the sample


def candidates(flat: Array, k: int) -> Array:
    if not eligible(flat):
        return NotImplemented
    bits, mask = _bits(flat)
    shift = bits.dtype.type(MANTISSA[flat.itemsize] - 3)
    infinity = int(flat.dtype.type(np.inf).view(bits.dtype) >> shift)  # its bin: above it all are NaN, which are equal
    for every in (EVERY, 1):
        counts = np.zeros((TABLES, (int(mask) >> int(shift)) + 1), np.int64)
        _count(bits, mask, shift, every, counts)
        wanted = k if every == 1 else k / every + 4 * (k / every) ** 0.5  # four standard deviations more
        from_the_top = np.cumsum(counts.sum(axis=0)[::-1])
        last_bin = counts.shape[1] - 1 - int(np.searchsorted(from_the_top, wanted))
        found = _at_least(bits, mask, min(max(last_bin, 0), infinity) << int(shift))
        if found.size >= k:
            break
    return found


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
    at = np.empty(bits.size, np.uint32)
    return at[: _collect(bits, mask, bits.dtype.type(least), at)].astype(np.intp)


@compiled()
def _count(bits: Any, mask: Any, shift: Any, every: int, counts: Any) -> None:
    for start in range(0, bits.size, SAMPLE * every):
        end = min(start + SAMPLE, bits.size)
        whole = end - (end - start) % TABLES
        for i in range(start, whole, TABLES):
            for table in range(TABLES):
                counts[table, (bits[i + table] & mask) >> shift] += 1
        for i in range(whole, end):
            counts[0, (bits[i] & mask) >> shift] += 1


@compiled()
def _collect(bits: Any, mask: Any, least: Any, at: Any) -> int:
    """Write the places of all magnitudes from `least` on; returns their number."""
    wide_vectors()
    number, whole = 0, bits.size - bits.size % BLOCK
    for start in range(0, whole, BLOCK):
        found = reaching(bits, start, mask, least)
        while found:
            at[number] = start + first_one(found)
            number += 1
            found &= found - np.uint64(1)
    for i in range(whole, bits.size):
        if (bits[i] & mask) >= least:
            at[number] = i
            number += 1
    return number
