"""Half: 16-bit floating-point numbers, and an all-reduce of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from minidl.arguments import one_of
from minidl.cluster.collectives.partition import split
from minidl.compress.compressor import Compressor, Message
from minidl.compress.exchange import AllToAll, Exchange, Gather, Sum
from minidl.kernels import Array
from minidl.kernels.sixteen_bit import cast

FORMATS: dict[str, Any] = {"fp16": np.dtype(np.float16), "bf16": np.dtype(bfloat16)}
ITEMSIZE = 2  # bytes


@dataclass
class Half(Compressor):
    """Sends every number in 16 bits and adds up in an all-reduce, whose bytes per node do not grow with the nodes.

        for each node i:
            round chunk i of this node's array, and send it to node i          (all-to-all)
        add up the chunks received, in the array's own precision, in rank order
        round the sum, and send it to all nodes                                (all-gather)

    Each of p nodes sends 2 (p - 1)/p 2n bytes for n numbers, like an all-reduce of 2-byte numbers. A ring would round
    at every hop; here each number is rounded twice, for any p:

        |error of the sum| <= u (|x_1| + ... + |x_p|) + u |sum of the rounded numbers|

    with u = 2^-11 for fp16 (numbers in its normal range) and 2^-8 for bf16.

    Parameters
        format  "fp16"  11 significant bits, magnitudes up to 65504
                "bf16"  8 significant bits, the range of float32: float32 without its last 16 bits

    Message: 2 n bytes.

    Notes
        Both formats round to nearest, ties to even, and keep infinities and NaN.
        fp16 rounds magnitudes up to 2^-25 (3e-8), which gradients do have, to zero; below 6.1e-5 its steps are 6e-8;
        from 65520 on it overflows to infinity, in a sum as well. So training in fp16 needs a loss scale, which is left
        to the loss function and the optimizer; bf16 needs none.
        Squared error of bf16: at most 2^-16 |x|^2 in the normal range of float32 (magnitudes from 1.2e-38 to 3.4e38).
        fp16 has no such bound, since its smallest numbers are lost entirely. `ErrorFeedback` is stable with both: a
        residual that grows is sent.

    Raises
        ValueError  for another format, for integer arrays

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
        one_of("Half: format", self.format, FORMATS)

    def encode(self, array: Array) -> Message:
        self.check(array.shape, array.dtype)
        flat = array.reshape(-1)
        halves = cast(cast(flat, np.dtype(np.float32)) if self.format == "bf16" else flat, FORMATS[self.format])
        return Message(halves.view(np.uint8), array.shape, array.dtype)

    def decode(self, message: Message) -> Array:
        halves = message.data.copy().view(FORMATS[self.format])
        return cast(halves, message.dtype).reshape(message.shape)

    def add_up(self, array: Array, nodes: int, rank: int) -> Exchange:
        message = self.encode(array)
        sizes = [chunk.size for chunk in split(array.reshape(-1), nodes)]
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
