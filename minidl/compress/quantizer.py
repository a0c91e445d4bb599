"""Quantizer: the base class of compressors that send each number as one of a few symbols, and a few scales."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl.compress.compressor import Compressor, Message
from minidl.kernels import Array
from minidl.kernels.counterparts import compiled_in

LANES = 64  # partial sums of a long sum, so that many numbers are added at a time


class Quantizer(Compressor):
    """Sends scales and one symbol per number.

    A subclass must define `symbols`, `quantize` and `dequantize`.

    Message: the scales (float32), then the symbols in ceil(log2(symbols)) bits each. `Lossless` sends the same symbols
    in fewer bits.

    Notes
        A scale that is infinite or NaN is sent like any other: its numbers decode to NaN or infinity, so that
        divergence stays visible.

    Raises
        ValueError  for integer arrays
    """

    @property
    def symbols(self) -> int:
        """The number of different symbols, which are 0, 1, ..., symbols - 1."""
        raise NotImplementedError(f"{type(self).__name__} does not say how many symbols it has: define symbols")

    def quantize(self, array: Array) -> tuple[Array, Array]:
        """The scales (float32), and one symbol (unsigned integer) per number; both flat."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it quantizes: define quantize()")

    def dequantize(self, scales: Array, symbols: Array, shape: tuple[int, ...]) -> Array:
        """The flat array of numbers that scales and symbols represent, best in the dtype of the scales."""
        raise NotImplementedError(f"{type(self).__name__} does not say what symbols mean: define dequantize()")

    def count_scales(self, shape: tuple[int, ...]) -> int:
        """The number of scales for an array of this shape."""
        return 1

    def message_bytes(self, shape: tuple[int, ...], dtype: Any) -> int:
        return 4 * self.count_scales(shape) + self.packed_bytes(math.prod(shape))

    @np.errstate(all="ignore")  # infinities and NaN are sent, see above
    def encode(self, array: Array) -> Message:
        self.check(array.shape, array.dtype)
        scales, symbols = self.quantize(array)
        return Message(np.concatenate([scales.view(np.uint8), self.pack(symbols)]), array.shape, array.dtype)

    @np.errstate(all="ignore")
    def decode(self, message: Message) -> Array:
        scales, packed = split_scales(message, self.count_scales(message.shape))
        symbols = self.unpack(packed, int(np.prod(message.shape)))
        numbers = self.dequantize(scales, symbols, message.shape)
        return numbers.astype(message.dtype, copy=False).reshape(message.shape)

    def pack(self, symbols: Array) -> Array:
        """Write symbols as bytes."""
        return pack_bits(symbols, (self.symbols - 1).bit_length())

    def packed_bytes(self, count: int) -> int:
        """The number of bytes that `count` symbols take."""
        return -(-count * (self.symbols - 1).bit_length() // 8)

    def unpack(self, packed: Array, count: int) -> Array:
        """Read the first `count` symbols."""
        return unpack_bits(packed, (self.symbols - 1).bit_length(), count)


def split_scales(message: Message, count: int) -> tuple[Array, Array]:
    """The `count` scales of a message, in float64 for an array of float64, and the bytes after them."""
    scales = message.data[: 4 * count].copy().view(np.float32)
    return scales.astype(np.result_type(np.float32, message.dtype), copy=False), message.data[4 * count :]


@compiled_in("few_bits")
def partial_sums(flat: Array, width: int, squared: bool) -> Array:
    """The magnitudes of a vector, or their squares, added up in float64: a row for each bucket of `width` numbers.

    Column j of a row adds up the bucket's numbers j, j + c, j + 2c, ..., where c is the number of columns.
    """
    lanes = min(width, LANES)
    buckets, rounds = -(-flat.size // width), -(-width // lanes)
    whole, padded = np.zeros((buckets, width)), np.zeros((buckets, rounds * lanes))
    whole.reshape(-1)[: flat.size] = flat
    padded[:, :width] = whole
    added = padded * padded if squared else np.abs(padded)
    return added.reshape(buckets, rounds, lanes).sum(axis=1)


@compiled_in("few_bits")
def two_values(symbols: Array, values: Array) -> Array:
    """values[1] where the symbol is 1, values[0] elsewhere, by columns; flat."""
    return np.where(symbols.reshape(-1, values.shape[1]), values[1], values[0]).reshape(-1)


@compiled_in("few_bits")
def numbers_of_levels(symbols: Array, scales: Array, width: int, levels: int) -> Array:
    """scale (symbol - levels) / levels, with one scale for each bucket of `width` numbers; in the scales' dtype."""
    fractions = (symbols.astype(np.float64) - levels) / levels
    return (np.repeat(scales, width)[: symbols.size] * fractions).astype(scales.dtype)


def pack_bits(numbers: Array, bits: int) -> Array:
    """Write numbers below 2**bits in `bits` bits each (at most 32), highest bit first: ceil(len * bits / 8) bytes."""
    if bits == 1:
        return np.packbits(numbers)
    if bits == 4:
        return pack_pairs(numbers)
    kind = _kind(bits)
    width = 8 * kind.itemsize
    whole = np.unpackbits(numbers.astype(kind).view(np.uint8)).reshape(numbers.size, width)
    return np.packbits(whole[:, width - bits :])


def unpack_bits(data: Array, bits: int, count: int) -> Array:
    """Read the first `count` numbers that `pack_bits` wrote."""
    if bits == 1:
        return np.unpackbits(data, count=count)
    if bits == 4:
        return unpack_pairs(data, count)
    kind = _kind(bits)
    width = 8 * kind.itemsize
    whole = np.zeros((count, width), np.uint8)
    whole[:, width - bits :] = np.unpackbits(data, count=count * bits).reshape(count, bits)
    return np.packbits(whole).view(kind)


@compiled_in("few_bits")
def pack_pairs(numbers: Array) -> Array:
    """Write two numbers below 16 in each byte, the first in its higher half."""
    first, second = np.append(numbers, np.zeros(numbers.size % 2, numbers.dtype)).astype(np.uint8).reshape(-1, 2).T
    return first << 4 | second


@compiled_in("few_bits")
def unpack_pairs(packed: Array, count: int) -> Array:
    """Read the first `count` numbers that `pack_pairs` wrote."""
    return np.stack([packed >> 4, packed & 15], axis=1).reshape(-1)[:count]


def _kind(bits: int) -> np.dtype[Any]:
    """The smallest dtype for numbers with this many bits, highest byte first."""
    return np.dtype(np.uint8) if bits <= 8 else np.dtype(">u4")
