"""Lossless: the symbols of a quantizer in fewer bits, since some are far more frequent than others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minidl.compress import elias, huffman
from minidl.compress.compressor import Compressor
from minidl.compress.message import Message
from minidl.compress.quantizer import Quantizer, split_scales
from minidl.kernels import Array
from minidl.optim import Optimizer

MAX_SYMBOLS = 1 << 16
FIXED, CODED = 0, 1
CODES = ("huffman", "elias")


@dataclass
class Lossless(Compressor):
    """Sends a quantizer's symbols in a code in which the frequent ones are short.

    Most numbers of a gradient are small, so most symbols of QSGD and TernGrad are zero. What is decoded is exactly what
    the quantizer by itself would give.

    Parameters
        quantizer  QSGD, TernGrad, OneBit or Sign
        code       "huffman": a code made for each message. With the symbols' entropy H (in bits, by their frequency in
                   the message) the words of n symbols take less than n (H + 1) bits, and no other code with a word for
                   each symbol takes fewer; a word has at least one bit.
                   "elias": sends only the symbols that are not zero and the distances between them. Shorter where
                   nearly all are zero, as with one level and large buckets, but without such a bound, since the code
                   is fixed beforehand. For quantizers that have a zero, QSGD and TernGrad

    Message: the scales as the quantizer's; a byte that says which code; the bytes of `huffman.encode`, `elias.encode`
    or, where these are longer, of the quantizer: at most a byte more than without.

    Raises
        TypeError   for what is no quantizer
        ValueError  for one of more than 65,536 symbols, an unknown code, "elias" with a quantizer that has no zero

    References
        Huffman (1952) and Elias (1975), as cited in `huffman.py` and `elias.py`; of gradients: Alistarh et al., QSGD
        (arXiv:1610.02132).

    Examples
        >>> from minidl.compress import TernGrad
        >>> x = np.zeros(1000)
        >>> x[:10] = 1.0
        >>> TernGrad().encode(x).nbytes, Lossless(TernGrad()).encode(x).nbytes  # 1,000 words of one bit, 8 bytes more
        (204, 133)
    """

    quantizer: Quantizer
    code: str = "huffman"

    def __post_init__(self) -> None:
        if not isinstance(self.quantizer, Quantizer):
            raise TypeError(f"Lossless codes the symbols of a quantizer, such as QSGD(7), not {self.quantizer!r}")
        if self.quantizer.symbols > MAX_SYMBOLS:
            raise ValueError(
                f"Lossless codes at most {MAX_SYMBOLS:,} different symbols, {self.quantizer!r} has "
                f"{self.quantizer.symbols:,}: use fewer levels"
            )

        if self.code not in CODES:
            raise ValueError(f"Lossless: unknown code {self.code!r}: choose one of {', '.join(CODES)}")
        if self.code == "elias" and self.quantizer.symbols % 2 == 0:
            raise ValueError(f"Lossless: Elias' code leaves out zeros, which {self.quantizer!r} has not: use 'huffman'")

    @property
    def is_stateful(self) -> bool:
        return self.quantizer.is_stateful

    @property
    def keeps_errors(self) -> bool:
        return self.quantizer.keeps_errors

    @property
    def needs_norm(self) -> bool:
        return self.quantizer.needs_norm

    @np.errstate(all="ignore")  # of what is not finite, as in the quantizer
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
            return elias.encode(symbols.astype(np.int64) - self._zero)
        return huffman.encode(symbols, self._symbol_bits)

    def _decode(self, data: Array, count: int) -> Array:
        if self.code == "elias":
            return elias.decode(data, count) + self._zero
        return huffman.decode(data, self._symbol_bits, count)

    def squared_error(self, size: int | None = None) -> float | None:
        return self.quantizer.squared_error(size)

    def contraction(self, size: int | None = None) -> Lossless | None:
        quantizer = self.quantizer.contraction(size)
        return replace(self, quantizer=quantizer) if isinstance(quantizer, Quantizer) else None

    def begin_run(self, seed: int, name: str, rank: int) -> None:
        self.quantizer.begin_run(seed, name, rank)

    def begin_epoch(self, epoch: int) -> None:
        self.quantizer.begin_epoch(epoch)

    def begin_step(self, norm: float, nodes: int) -> None:
        self.quantizer.begin_step(norm, nodes)

    def check(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.quantizer.check(shape, dtype)

    def check_optimizer(self, optimizer: Optimizer) -> None:
        self.quantizer.check_optimizer(optimizer)

    @property
    def _zero(self) -> int:
        return self.quantizer.symbols // 2

    @property
    def _symbol_bits(self) -> int:
        return (self.quantizer.symbols - 1).bit_length()
