"""Huffman's code: short codewords for frequent symbols, so that a sequence takes the fewest bits."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.integer[Any]]
LENGTH_BITS = 6  # a codeword has fewer than 64 bits in any sequence of fewer than 2**44 symbols


def encode(symbols: Whole, symbol_bits: int) -> NDArray[np.uint8]:
    """Write symbols, each below 2**symbol_bits, as bytes: a table of the code, then one codeword per symbol.

    The codewords of n symbols take less than n (H + 1) bits, where H is the entropy of the symbols' frequencies in
    bits; none at all if all symbols are equal. The table for k different symbols: k - 1 (symbol_bits bits), the symbols
    (symbol_bits bits each), the lengths of their codewords (6 bits each), which determine a canonical code.
    """
    if not symbols.size:
        return np.empty(0, np.uint8)
    present, place, counts = np.unique(symbols, return_inverse=True, return_counts=True)
    lengths = word_lengths(counts)
    order = np.argsort(lengths, kind="stable")
    words = np.empty(present.size, np.uint64)
    words[order] = canonical_words(lengths[order])
    return np.packbits(
        np.concatenate(
            [
                as_bits(np.array([present.size - 1]), np.array([symbol_bits])),
                as_bits(present[order], np.full(present.size, symbol_bits)),
                as_bits(lengths[order], np.full(present.size, LENGTH_BITS)),
                as_bits(words[place], lengths[place]),
            ]
        )
    )


def decode(data: NDArray[np.uint8], symbol_bits: int, count: int) -> Whole:
    """Read the `count` symbols that `encode` wrote."""
    if not count:
        return np.empty(0, np.uint64)
    bits = np.unpackbits(data)
    (last,), bits = read(bits, 1, symbol_bits)
    present, bits = read(bits, int(last) + 1, symbol_bits)
    lengths, bits = read(bits, int(last) + 1, LENGTH_BITS)
    if last == 0:
        return np.full(count, present[0])
    return present[places(bits, lengths, count)]


def word_lengths(counts: Whole) -> Whole:
    """The length of each symbol's codeword: repeatedly join the two rarest groups, which adds one bit to each.

    Source: Huffman, A method for the construction of minimum-redundancy codes (Proceedings of the IRE 40(9), 1952).

    >>> word_lengths(np.array([1, 1, 2, 4]))
    array([3, 3, 2, 1])
    """
    lengths = np.zeros(len(counts), np.int64)
    groups = [(int(count), i, [i]) for i, count in enumerate(counts)]
    heapq.heapify(groups)
    while len(groups) > 1:
        rarest, tie, members = heapq.heappop(groups)
        other, _, others = heapq.heappop(groups)
        lengths[members + others] += 1
        heapq.heappush(groups, (rarest + other, tie, members + others))
    return lengths


def canonical_words(lengths: Whole) -> NDArray[np.uint64]:
    """Codewords of these ascending lengths, of which none is a prefix of another: add 1 each time, then append zeros.

    >>> [f"{word:0{length}b}" for word, length in zip(canonical_words(np.array([1, 2, 3, 3])), [1, 2, 3, 3])]
    ['0', '10', '110', '111']
    """
    words, word, before = [], 0, int(lengths[0])
    for length in lengths.tolist():
        word <<= length - before
        words.append(word)
        word, before = word + 1, length
    return np.array(words, np.uint64)


def places(bits: NDArray[np.uint8], lengths: Whole, count: int) -> Whole:
    """Decode `count` codewords to their places in the canonical code: first at every bit, then at true beginnings."""
    longest = int(lengths[-1])
    padded = np.concatenate([bits, np.zeros(longest, np.uint8)])
    window = np.zeros(bits.size, np.uint64)  # the `longest` bits from each bit on
    for i in range(longest):
        window = window << np.uint64(1) | padded[i : i + bits.size]
    firsts = canonical_words(lengths) << (longest - lengths).astype(np.uint64)  # the smallest window of each codeword
    place = np.searchsorted(firsts, window, side="right") - 1
    after = (np.arange(bits.size) + lengths[place].astype(np.int64)).tolist()
    begins, position = [], 0
    for _ in range(count):
        begins.append(position)
        position = after[position]
    return place[begins]


def as_bits(numbers: Whole, lengths: Whole) -> NDArray[np.uint8]:
    """Concatenate the numbers, each in its own number of bits, highest bit first."""
    ends = np.cumsum(lengths)
    below = np.repeat(ends, lengths) - np.arange(1, int(ends[-1]) + 1)  # bits of the same number after each bit
    return (np.repeat(numbers, lengths).astype(np.uint64) >> below.astype(np.uint64) & np.uint64(1)).astype(np.uint8)


def read(bits: NDArray[np.uint8], count: int, length: int) -> tuple[Whole, NDArray[np.uint8]]:
    """The first `count` numbers of `length` bits each, and the remaining bits."""
    weights = np.uint64(1) << np.arange(length, dtype=np.uint64)[::-1]
    return bits[: count * length].reshape(count, length) @ weights, bits[count * length :]
