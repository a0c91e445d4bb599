"""Half: two bytes a number, and an all-reduce of two bytes a number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from minidl.cluster.collectives.partition import split
from minidl.compress.compressor import Compressor
from minidl.compress.exchange import AddingUp, AllToAll, Gather, Sum
from minidl.compress.message import Message
from minidl.kernels import Array
from minidl.kernels.sixteen_bit import cast

FORMATS: dict[str, Any] = {"fp16": np.float16, "bf16": bfloat16}
ITEMSIZE = 2  # bytes


@dataclass
class Half(Compressor):
    """Sends every number in 16 bits and adds up in an all-reduce, so that the bytes do not grow with the nodes.

        round this node's array; send chunk i of it to node i                  (all-to-all)
        add up the chunks that came, in the array's own precision, in rank order
        round the sum; send it to all nodes                                    (all-gather)

    Each of p nodes sends 2 (p - 1)/p 2n bytes for n numbers, as an all-reduce of 2-byte numbers does. In a ring every
    hop would round; here each number is rounded twice, however many nodes there are:

        |error of the sum| <= u (|x_1| + ... + |x_p|) + u |sum of the rounded numbers|

    with u = 2^-11 for fp16 (of numbers in its normal range) and 2^-8 for bf16.

    Parameters
        format  "fp16": 11 significant bits and a small range; "bf16": 8 significant bits and the range of float32

    Notes
        Both formats round to nearest, ties to even, and keep infinities and NaN.
        fp16 makes zero of magnitudes up to 2^-25 (3e-8), which gradients do have, represents those below 6.1e-5 in
        steps of 6e-8, and makes an infinity of those from 65520 on, of a sum as well. Training in fp16 therefore
        multiplies the loss by a large factor and divides the gradient by it after decoding; that is left to the loss
        function and the optimizer. bf16 is float32 without its last 16 bits and needs no such factor.
        Error feedback: bf16 has a squared error of at most 2^-16 |x|^2, in the normal range of float32 (magnitudes from
        1.2e-38 to 3.4e38). No such bound holds for fp16, whose error is |x| itself for the smallest numbers; what is
        kept is bounded all the same, since larger numbers are sent.

    Raises
        ValueError  for another format

    References
        Micikevicius et al., Mixed precision training (arXiv:1710.03740), section 3; Kalamkar et al., A study of
        BFLOAT16 (arXiv:1905.12322).

    Examples
        >>> x = np.array([1.0, 1e-8, 1e5], dtype="float32")
        >>> for format in FORMATS:
        ...     print(Half(format).decode(Half(format).encode(x)).tolist())
        [1.0, 0.0, inf]
        [1.0, 1.0011717677116394e-08, 99840.0]
    """

    format: str = "fp16"

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(f"Half: unknown format {self.format!r}: choose one of {', '.join(FORMATS)}")

    def encode(self, array: Array) -> Message:
        self.check(array.shape, array.dtype)
        flat = array.reshape(-1)
        halves = cast(cast(flat, np.float32) if self.format == "bf16" else flat, FORMATS[self.format])
        return Message(halves.view(np.uint8), array.shape, array.dtype)

    def decode(self, message: Message) -> Array:
        halves = message.data.copy().view(FORMATS[self.format])
        return cast(halves, message.dtype).reshape(message.shape)

    def add_up(self, array: Array, nodes: int, rank: int) -> AddingUp:
        message = self.encode(array)
        sizes = [part.size for part in split(array.reshape(-1), nodes)]
        ends = np.cumsum(sizes)
        shares = yield AllToAll(np.split(message.data, ITEMSIZE * ends[:-1]))
        chunk = np.zeros(sizes[rank], array.dtype)
        for share in shares:
            chunk += self.decode(Message(share, chunk.shape, chunk.dtype))
        rounded = self.encode(chunk)
        finished = yield Gather(rounded.data, [ITEMSIZE * size for size in sizes])
        total = self.decode(Message(np.concatenate(finished), array.shape, array.dtype))

        def left_out() -> Array:
            errors = array.reshape(-1) - self.decode(message).reshape(-1)
            errors[ends[rank] - sizes[rank] : ends[rank]] += chunk - self.decode(rounded)
            return errors.reshape(array.shape)

        return Sum(total, left_out)

    def message_bytes(self, shape: tuple[int, ...], dtype: Any) -> int:
        return ITEMSIZE * math.prod(shape)

    def squared_error(self, size: int | None = None) -> float | None:
        return 2.0**-16 if self.format == "bf16" else None
