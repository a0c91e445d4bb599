"""Lossless: the symbols of a quantizer in fewer bits, with short codewords for frequent symbols."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl.arguments import one_of
from minidl.compress import huffman
from minidl.compress.compressor import Message
from minidl.compress.huffman import as_bits
from minidl.compress.quantizer import Quantizer, split_scales
from minidl.compress.wrapper import Wrapper
from minidl.kernels import Array

MAX_SYMBOLS = 1 << 16
FIXED, CODED = 0, 1
CODES = ("huffman", "elias")


@dataclass
class Lossless(Wrapper):
    """Sends a quantizer's symbols in a code that is short for frequent symbols.

    Most numbers of a gradient are small, so most symbols of QSGD and TernGrad are zero. The decoded array is exactly
    that of the quantizer alone.

    Parameters
        quantizer  QSGD, TernGrad, OneBit or Sign
        code       "huffman"  (default) a code made for each message. n symbols take less than n (H + 1) bits, where H
                              is the entropy of the symbols' frequencies in the message, in bits; no other code with
                              one codeword per symbol takes fewer. A codeword has at least one bit, unless all
                              symbols are equal
                   "elias"    sends only the symbols that are not zero, and the distances between them. Shorter if
                              nearly all are zero (one level and large buckets), but without such a bound, since the
                              code is fixed. For quantizers that have a zero: QSGD and TernGrad

    Message: the quantizer's scales; one byte that names the code; the bytes of `huffman.encode` or `encode_elias`, or
    those of the quantizer where they are fewer. At most one byte longer than the quantizer's message.

    Raises
        TypeError   if `quantizer` is not a Quantizer
        ValueError  for more than 65,536 symbols, an unknown code, "elias" with a quantizer that has no zero

    References
        Huffman (1952) and Elias (1975), cited in `huffman.py` and `encode_elias`; for gradients, Alistarh et al., QSGD
        (arXiv:1610.02132).

    Examples
        >>> from minidl.compress import TernGrad
        >>> x = np.zeros(1000)
        >>> x[:10] = 1.0
        >>> TernGrad().encode(x).nbytes, Lossless(TernGrad()).encode(x).nbytes  # 1,000 codewords of one bit
        (204, 133)
    """

    quantizer: Quantizer
    code: str = "huffman"

    def __post_init__(self) -> None:
        if not isinstance(self.quantizer, Quantizer):
            raise TypeError(f"Lossless codes the symbols of a quantizer, such as QSGD(7), not {self.quantizer!r}")
        self.compressor = self.quantizer  # what `Wrapper` delegates to
        if self.quantizer.symbols > MAX_SYMBOLS:
            raise ValueError(
                f"Lossless codes at most {MAX_SYMBOLS:,} different symbols, {self.quantizer!r} has "
                f"{self.quantizer.symbols:,}: use fewer levels"
            )
        one_of("Lossless: code", self.code, CODES)
        if self.code == "elias" and self.quantizer.symbols % 2 == 0:
            raise ValueError(
                f"Lossless: Elias' code leaves out zeros, but {self.quantizer!r} has no zero: use 'huffman'"
            )

    @np.errstate(all="ignore")  # infinities and NaN are sent, as by the quantizer
    def encode(self, array: Array) -> Message:
        self.check(array.shape, array.dtype)
        scales, symbols = self.quantizer.quantize(array)
        fixed, coded = self.quantizer.pack(symbols), self._encode(symbols)
        choice, shorter = (CODED, coded) if coded.size < fixed.size else (FIXED, fixed)
        data = np.concatenate([scales.view(np.uint8), np.array([choice], np.uint8), shorter])
        return Message(data, array.shape, array.dtype)

    @np.errstate(all="ignore")
    def decode(self, message: Message) -> Array:
        scales, data = split_scales(message, self.quantizer.count_scales(message.shape))
        count = int(np.prod(message.shape))
        symbols = self._decode(data[1:], count) if data[0] == CODED else self.quantizer.unpack(data[1:], count)
        numbers = self.quantizer.dequantize(scales, symbols, message.shape)
        return numbers.astype(message.dtype).reshape(message.shape)

    def _encode(self, symbols: Array) -> Array:
        if self.code == "elias":
            return encode_elias(symbols.astype(np.int64) - self._zero)
        return huffman.encode(symbols, self._symbol_bits)

    def _decode(self, data: Array, count: int) -> Array:
        if self.code == "elias":
            return decode_elias(data, count) + self._zero
        return huffman.decode(data, self._symbol_bits, count)

    def message_bytes(self, shape: tuple[int, ...], dtype: Any) -> None:
        """None: the length depends on the values."""

    def contraction(self, size: int | None = None) -> Lossless | None:
        quantizer = self.quantizer.contraction(size)
        return replace(self, quantizer=quantizer) if isinstance(quantizer, Quantizer) else None

    @property
    def _zero(self) -> int:
        return self.quantizer.symbols // 2

    @property
    def _symbol_bits(self) -> int:
        return (self.quantizer.symbols - 1).bit_length()


Whole = NDArray[np.integer[Any]]


def encode_elias(levels: Whole) -> NDArray[np.uint8]:
    """Write signed levels in Elias' gamma code: of each nonzero one, the distance from the one before, sign and size.

    The sign is one bit. Distance and size are at least 1 and written in the gamma code: k in binary, preceded by one
    zero for each digit after the first, 2 floor(log2 k) + 1 bits. If most levels are nonzero, this may be longer than a
    fixed number of bits per level.

    Source: Elias, Universal codeword sets and representations of the integers (IEEE Transactions on Information Theory
    21(2), 1975); for gradients, Alistarh et al., QSGD (arXiv:1610.02132), with Elias' recursive code.

    >>> encode_elias(np.array([0, 0, 0, -1, 2])).nbytes  # 00100 1 1, 1 0 010: 12 bits
    2
    """
    where = np.flatnonzero(levels)
    if not where.size:
        return np.empty(0, np.uint8)
    distances, sizes = np.diff(where, prepend=-1), np.abs(levels[where])
    numbers = np.stack([distances, levels[where] < 0, sizes], axis=1)
    lengths = np.stack([gamma_length(distances), np.ones_like(where), gamma_length(sizes)], axis=1)
    return np.packbits(as_bits(numbers.reshape(-1), lengths.reshape(-1)))


def decode_elias(data: NDArray[np.uint8], count: int) -> Whole:
    """Read the `count` levels that `encode_elias` wrote; up to seven zeros at the end are padding."""
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
