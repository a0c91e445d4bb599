"""Compressors that send few entries: which numbers are the largest, and the running sums of DGC.

A number's magnitude is compared as the whole number that its bits are without the sign: it rises with the magnitude,
and NaN is above infinity. A first walk counts the magnitudes of a sample by exponent and three bits after it, which
gives a bin that probably is not above the k-th largest. A second collects all magnitudes from this bin on. If they are
fewer than k, the sample was not like the whole: then all magnitudes are counted, and collected again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels import Array
from minidl.kernels.jit.compiled import compiled
from minidl.kernels.jit.function_attributes import wide_vectors

MANTISSA = {4: 23, 8: 52}  # bits, by the bytes of a number
TABLES = 4  # adjacent numbers are counted apart, so that no counter waits for its last addition
BLOCK = 16  # numbers that are compared together before one of them is written
SAMPLE, EVERY = 256, 16  # the first 256 numbers of every 16 times 256 are the sample


def candidates(flat: Array, k: int) -> Array:
    bits, mask = _bits(flat)
    shift = bits.dtype.type(MANTISSA[flat.itemsize] - 3)
    infinity = int(flat.dtype.type(np.inf).view(bits.dtype) >> shift)  # its bin: above it all are NaN, which are equal
    for every in (EVERY, 1):
        counts = np.zeros((TABLES, int(mask >> shift) + 1), np.int64)
        _count(bits, mask, shift, every, counts)
        wanted = k if every == 1 else k / every + 4 * (k / every) ** 0.5  # four standard deviations more
        from_the_top = np.cumsum(counts.sum(axis=0)[::-1])
        last_bin = counts.shape[1] - 1 - int(np.searchsorted(from_the_top, wanted))
        found = _at_least(bits, mask, min(max(last_bin, 0), infinity) << int(shift))
        if found.size >= k:
            break
    return found


def larger_than(flat: Array, bound: float) -> Array:
    bits, mask = _bits(flat)
    return _at_least(bits, mask, int(flat.dtype.type(bound).view(bits.dtype) & mask) + 1)


def _bits(flat: Array) -> tuple[Array, Any]:
    """The numbers as whole numbers, and the mask that removes their signs."""
    bits = flat.view(np.uint32 if flat.itemsize == 4 else np.uint64)
    return bits, np.iinfo(bits.dtype).max >> bits.dtype.type(1)


def _at_least(bits: Array, mask: Any, least: int) -> Array:
    at = np.empty(bits.size + 1, np.uint32)
    return at[: _collect(bits, mask, bits.dtype.type(least), at)].astype(np.intp)


@compiled()
def _count(bits: Any, mask: Any, shift: Any, every: int, counts: Any) -> None:
    for start in range(0, bits.size, SAMPLE * every):
        for i in range(start, min(start + SAMPLE, bits.size)):
            counts[i % TABLES, (bits[i] & mask) >> shift] += 1


@compiled()
def _collect(bits: Any, mask: Any, least: Any, at: Any) -> int:
    """Write the places of all magnitudes from `least` on, and one place more; returns their number."""
    wide_vectors()
    found, whole = 0, bits.size - bits.size % BLOCK
    for start in range(0, whole, BLOCK):
        is_any = False
        for i in range(start, start + BLOCK):
            is_any |= (bits[i] & mask) >= least
        if is_any:
            for i in range(start, start + BLOCK):
                at[found] = i
                found += (bits[i] & mask) >= least
    for i in range(whole, bits.size):
        at[found] = i
        found += (bits[i] & mask) >= least
    return found


def add_velocity(accumulated: Array, velocity: Array, gradient: Array, momentum: float) -> None:
    _add_velocity(accumulated, velocity, gradient, velocity.dtype.type(momentum))


@compiled()
def _add_velocity(accumulated: Any, velocity: Any, gradient: Any, momentum: Any) -> None:
    wide_vectors()
    for i in range(gradient.size):
        velocity[i] = velocity[i] * momentum + gradient[i]
        accumulated[i] += velocity[i]
