"""Half: two bytes a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minidl.compress.compressor import Compressor
from minidl.compress.message import Message
from minidl.kernels import Array

FORMATS = ("fp16", "bf16")


@dataclass
class Half(Compressor):
    """Every number in 16 bits: "fp16" has 11 significant bits and a small range, "bf16" 8 and the range of float32.

    Both round to the nearest, ties to even. fp16 makes zero of magnitudes up to 2^-25, about 3e-8, which gradients do
    have, counts those below 6.1e-5 in steps of 6e-8, and makes an infinity of those from 65520 on: training in fp16
    multiplies the loss by a large factor and divides the gradient by it after decoding, which is for the loss function
    and the optimizer to do. bf16 needs nothing of the kind: it is float32 without its last 16 bits. Infinities and NaN
    are kept. Messages are 2 n bytes; they are gathered and added up in the array's own precision.
    Source: Micikevicius et al., Mixed precision training (arXiv:1710.03740), section 3; Kalamkar et al., A study of
    BFLOAT16 (arXiv:1905.12322).

    >>> x = np.array([1.0, 1e-8, 1e5], dtype="float32")
    >>> for format in FORMATS:
    ...     print(Half(format).decode(Half(format).encode(x)).tolist())
    [1.0, 0.0, inf]
    [1.0, 1.0011717677116394e-08, 99840.0]

    Errors: ValueError for another format.
    """

    format: str = "fp16"

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(f"Half: unknown format {self.format!r}: choose one of {', '.join(FORMATS)}")

    def encode(self, array: Array) -> Message:
        self.check(array.shape, array.dtype)
        flat = array.reshape(-1)
        if self.format == "fp16":
            with np.errstate(over="ignore"):  # to infinity, as is said above
                halves = flat.astype(np.float16)
        else:
            halves = to_bfloat16(flat.astype(np.float32))
        return Message(halves.view(np.uint8), array.shape, array.dtype)

    def decode(self, message: Message) -> Array:
        halves = message.data.copy().view(np.float16 if self.format == "fp16" else np.uint16)
        if self.format == "bf16":
            halves = (halves.astype(np.uint32) << 16).view(np.float32)
        return halves.astype(message.dtype).reshape(message.shape)


def to_bfloat16(x: Array) -> Array:
    """The upper 16 bits of float32 numbers, rounded to nearest, ties to even."""
    bits = x.view(np.uint32)
    odd = bits >> 16 & 1  # of the last bit that is kept: a tie, 0x8000 below it, goes up if it is 1
    rounded = bits + np.uint32(0x7FFF) + odd  # the greatest finite numbers may become an infinity, as they should
    not_a_number = bits >> 16 | 0x40  # not rounded, which could make an infinity or a zero of it
    return np.where(np.isnan(x), not_a_number, rounded >> 16).astype(np.uint16)
