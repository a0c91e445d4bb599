"""Elias' gamma code: codewords that grow with the number, without a table; for symbols of which most are zero."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl.compress.huffman import as_bits

Whole = NDArray[np.integer[Any]]


def encode(levels: Whole) -> NDArray[np.uint8]:
    """Write signed levels as bytes: for each nonzero level its distance from the previous one, its sign and its size.

    The sign is one bit. Distance and size are at least 1 and written in the gamma code: k in binary, preceded by one
    zero for each digit after the first, 2 floor(log2 k) + 1 bits. If most levels are nonzero, this may be longer than a
    fixed number of bits per level.

    Source: Elias, Universal codeword sets and representations of the integers (IEEE Transactions on Information Theory
    21(2), 1975); for gradients, Alistarh et al., QSGD (arXiv:1610.02132), with Elias' recursive code.

    >>> encode(np.array([0, 0, 0, -1, 2])).nbytes  # 00100 1 1, 1 0 010: 12 bits
    2
    """
    where = np.flatnonzero(levels)
    if not where.size:
        return np.empty(0, np.uint8)
    distances, sizes = np.diff(where, prepend=-1), np.abs(levels[where])
    numbers = np.stack([distances, levels[where] < 0, sizes], axis=1)
    lengths = np.stack([gamma_length(distances), np.ones_like(where), gamma_length(sizes)], axis=1)
    return np.packbits(as_bits(numbers.reshape(-1), lengths.reshape(-1)))


def decode(data: NDArray[np.uint8], count: int) -> Whole:
    """Read the `count` levels that `encode` wrote; up to seven zeros at the end are padding."""
    levels = np.zeros(count, np.int64)
    digits = (np.unpackbits(data) + ord("0")).tobytes().decode()
    at, place = 0, -1
    while (first := digits.find("1", at)) >= 0:
        end = 2 * first - at + 1  # as many digits after the first 1 as zeros before it
        place += int(digits[first:end], 2)
        is_negative = digits[end] == "1"
        first = digits.index("1", end + 1)
        at = 2 * first - end
        size = int(digits[first:at], 2)
        levels[place] = -size if is_negative else size
    return levels


def gamma_length(numbers: Whole) -> Whole:
    """The bits that numbers, at least 1, take in the gamma code.

    >>> gamma_length(np.array([1, 2, 3, 4]))
    array([1, 3, 3, 5])
    """
    return (2 * np.frexp(numbers.astype(np.float64))[1] - 1).astype(np.int64)
