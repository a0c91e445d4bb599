"""Lossless: the symbols of a quantizer in fewer bits, since some are far more frequent than others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minidl.compress import huffman
from minidl.compress.compressor import Compressor
from minidl.compress.message import Message
from minidl.compress.quantizer import Quantizer, split_scales
from minidl.kernels import Array

MAX_SYMBOLS = 1 << 16
FIXED, CODED = 0, 1


@dataclass
class Lossless(Compressor):
    """A quantizer whose symbols are sent in Huffman's code for this message: the frequent ones have the short words.

    Most numbers of a gradient are small, so most symbols of QSGD and TernGrad are zero. With the symbols' entropy H (in
    bits, by their frequency in this message) the words of n symbols take less than n (H + 1) bits, and no other code
    with a word for each symbol takes fewer; a code that is fixed beforehand, as Elias', promises nothing of the kind.
    But words have one bit at least: where nearly all symbols are equal, a code of the distances between the others
    would do better. Where the code's table takes more than the code saves, the symbols are sent as the quantizer does.

    quantizer: QSGD, TernGrad, OneBit or Sign. What is decoded is exactly what the quantizer by itself would give.
    Message: the scales as the quantizer's; a byte that says which, and the bytes of `huffman.encode`, or the
    quantizer's: at most a byte longer than without.
    Source: Huffman (1952); of gradients, with Elias' code: Alistarh et al., QSGD (arXiv:1610.02132), section 3.2.

    >>> from minidl.compress import TernGrad
    >>> x = np.zeros(1000)
    >>> x[:10] = 1.0
    >>> TernGrad().encode(x).nbytes, Lossless(TernGrad()).encode(x).nbytes  # 1,000 words of one bit and 8 bytes more
    (204, 133)

    Errors: TypeError for what is no quantizer; ValueError for one of more than 65,536 symbols.
    """

    quantizer: Quantizer

    def __post_init__(self) -> None:
        if not isinstance(self.quantizer, Quantizer):
            raise TypeError(f"Lossless codes the symbols of a quantizer, such as QSGD(7), not {self.quantizer!r}")
        if self.quantizer.symbols > MAX_SYMBOLS:
            raise ValueError(
                f"Lossless codes at most {MAX_SYMBOLS:,} different symbols, {self.quantizer!r} has "
                f"{self.quantizer.symbols:,}: use fewer levels"
            )

    @np.errstate(all="ignore")  # of what is not finite, as in the quantizer
    def encode(self, array: Array) -> Message:
        scales, symbols = self.quantizer.quantize(array)
        fixed, coded = self.quantizer.pack(symbols), huffman.encode(symbols, self._symbol_bits)
        choice, shorter = (CODED, coded) if coded.size < fixed.size else (FIXED, fixed)
        data = np.concatenate([scales.view(np.uint8), np.array([choice], np.uint8), shorter])
        return Message(data, array.shape, array.dtype)

    @np.errstate(all="ignore")
    def decode(self, message: Message) -> Array:
        scales, data = split_scales(message, self.quantizer.count_scales(message.shape))
        count = int(np.prod(message.shape))
        if data[0] == CODED:
            symbols = huffman.decode(data[1:], self._symbol_bits, count)
        else:
            symbols = self.quantizer.unpack(data[1:], count)
        numbers = self.quantizer.dequantize(scales, symbols, message.shape)
        return numbers.astype(message.dtype).reshape(message.shape)

    @property
    def _symbol_bits(self) -> int:
        return (self.quantizer.symbols - 1).bit_length()
