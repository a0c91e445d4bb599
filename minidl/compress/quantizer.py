"""Quantizer: the base of the compressors that send each number as one of a few symbols, and a scale or two for many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl.compress.compressor import Compressor
from minidl.compress.message import Message
from minidl.kernels import Array


class Quantizer(Compressor):
    """Sends each number as one of a few symbols: `quantize` makes scales and symbols, `dequantize` numbers of them.

    Message: the scales (float32), then the symbols, each in as many bits as the number of different ones needs. A
    wrapper may write the same symbols in fewer bits (`lossless.py`).

    Notes
        A scale that is infinite or NaN is sent like any other, so its numbers decode to NaN or infinity and divergence
        stays visible.

    Raises
        ValueError  for arrays of integers
    """

    @property
    def symbols(self) -> int:
        """How many different symbols there are: 0 to `symbols` - 1."""
        raise NotImplementedError(f"{type(self).__name__} does not say how many symbols it has: define symbols")

    def quantize(self, array: Array) -> tuple[Array, Array]:
        """The scales (float32) and the symbols (unsigned integers), one for each number, both flat."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it quantizes: define quantize()")

    def dequantize(self, scales: Array, symbols: Array, shape: tuple[int, ...]) -> Array:
        """The flat array of numbers that scales and symbols stand for."""
        raise NotImplementedError(f"{type(self).__name__} does not say what symbols mean: define dequantize()")

    def count_scales(self, shape: tuple[int, ...]) -> int:
        """The number of scales of an array of that shape."""
        return 1

    def message_bytes(self, shape: tuple[int, ...], dtype: Any) -> int:
        return 4 * self.count_scales(shape) + self.packed_bytes(math.prod(shape))

    @np.errstate(all="ignore")  # of what is not finite, as is said above
    def encode(self, array: Array) -> Message:
        self.check(array.shape, array.dtype)
        scales, symbols = self.quantize(array)
        return Message(np.concatenate([scales.view(np.uint8), self.pack(symbols)]), array.shape, array.dtype)

    @np.errstate(all="ignore")
    def decode(self, message: Message) -> Array:
        scales, packed = split_scales(message, self.count_scales(message.shape))
        symbols = self.unpack(packed, int(np.prod(message.shape)))
        return self.dequantize(scales, symbols, message.shape).astype(message.dtype).reshape(message.shape)

    def pack(self, symbols: Array) -> Array:
        """The symbols as bytes."""
        return pack_bits(symbols, (self.symbols - 1).bit_length())

    def packed_bytes(self, count: int) -> int:
        """The bytes of `count` symbols."""
        return -(-count * (self.symbols - 1).bit_length() // 8)

    def unpack(self, packed: Array, count: int) -> Array:
        """The first `count` symbols of the bytes."""
        return unpack_bits(packed, (self.symbols - 1).bit_length(), count)


def split_scales(message: Message, count: int) -> tuple[Array, Array]:
    """A message's `count` scales, and the bytes after them."""
    return message.data[: 4 * count].copy().view(np.float32), message.data[4 * count :]


def pack_bits(numbers: Array, bits: int) -> Array:
    """Numbers below 2**bits, `bits` bits each (32 at most), the highest first: ceil(len * bits / 8) bytes, no gaps."""
    kind = _kind(bits)
    width = 8 * kind.itemsize
    whole = np.unpackbits(numbers.astype(kind).view(np.uint8)).reshape(numbers.size, width)
    return np.packbits(whole[:, width - bits :])


def unpack_bits(data: Array, bits: int, count: int) -> Array:
    """The first `count` numbers that `pack_bits` has packed."""
    kind = _kind(bits)
    width = 8 * kind.itemsize
    whole = np.zeros((count, width), np.uint8)
    whole[:, width - bits :] = np.unpackbits(data, count=count * bits).reshape(count, bits)
    return np.packbits(whole).view(kind)


def _kind(bits: int) -> np.dtype[Any]:
    """The smallest dtype for numbers of this many bits, the highest byte first."""
    return np.dtype(np.uint8) if bits <= 8 else np.dtype(">u4")
