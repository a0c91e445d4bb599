"""ErrorFeedback: what a compressor left out is kept, and added to the next gradient."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

from minidl.compress.compressor import Compressor
from minidl.compress.exchange import AddingUp, Sum
from minidl.compress.message import Message
from minidl.compress.wrapper import Wrapper
from minidl.kernels import Array


@dataclass
class ErrorFeedback(Wrapper):
    """Remembers what a compressor has left out and adds it to the next gradient: gradients are late, but none is lost.

        accumulated = gradient + residual
        message     = compressor.encode(accumulated)
        residual    = accumulated - compressor.decode(message)

    Parameters
        compressor  a contraction: E |x - decode(encode(x))|^2 <= (1 - delta) |x|^2 for some delta > 0. Around any other
                    the residual grows without bound, although nothing is lost

    Which compressors are contractions
        TopK, RandomK, Sign, OneBit     always
        QSGD                            if min(d / (4 s^2), sqrt(d) / s) < 1, for s levels and d numbers a bucket
        RandomK(unbiased=True)          at a density above 1/2
        TernGrad                        refused: its error is (sqrt(n) - 1) / 2 |x|^2 for some arrays of n numbers
        Half("bf16")                    always
        Threshold, Half("fp16")         accepted: the error of each number is bounded by a constant instead
        PowerSGD                        accepted: what it leaves out is a projection, never larger than x; residuals are
                                        bounded unless differences between nodes always cancel (see there)
        Lossless, QuantizedAllReduce    as what they wrap
        a compressor of your own        as its `squared_error` says; accepted without a check where it does not say

    A given bucket of QSGD is judged when ErrorFeedback is made, as if parameters had at least that many numbers. With
    `bucket=None`, d is the size of the parameter, known before the run.

    Notes
        Sent and residual add up to the accumulated gradient: to the bit where values are sent as they are (TopK,
        Threshold, RandomK), else to rounding. So over a run the sum of what was sent and the last residual is the sum
        of all gradients.
        The residual holds gradients; the learning rate that applies is that of the step in which they are sent. Where
        the update itself, lr g, is accumulated (Karimireddy et al.), it is the rate of the step in which they were
        computed: the sum of lr g is conserved then. Both are the same as long as the rate is.
        Where nodes encode jointly (PowerSGD, QuantizedAllReduce) each node keeps what its own encoding has lost. The
        residuals of all nodes add up to what is missing from the sum.

    Raises
        TypeError   for what is no compressor
        ValueError  for a compressor that keeps its errors already, or that is no contraction

    References
        Seide et al., 1-bit stochastic gradient descent (Interspeech 2014); Karimireddy et al., Error feedback fixes
        signSGD (arXiv:1901.09847), algorithm 2 and assumption A; of joint encoding, Vogels et al., PowerSGD
        (arXiv:1905.13727), algorithm 2.

    Examples
        >>> import numpy as np
        >>> from minidl import compress
        >>> c = ErrorFeedback(compress.TopK(0.5))
        >>> for _ in range(2):
        ...     message = c.encode(np.array([3.0, 2.0]))
        ...     c.decode(message), c.residual
        (array([3., 0.]), array([0., 2.]))
        (array([0., 4.]), array([3., 0.]))
    """

    residual: Array | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.compressor, Compressor):
            raise TypeError(f"ErrorFeedback wraps a compressor, such as TopK(0.01), not {self.compressor!r}")
        self.check_is_no_vote()
        if self.compressor.keeps_errors:
            raise ValueError(
                f"ErrorFeedback: {type(self.compressor).__name__} keeps what it leaves out already: use it by itself"
            )
        self._check_contraction()

    @property
    def is_stateful(self) -> bool:
        return True

    @property
    def keeps_errors(self) -> bool:
        return True

    def begin_run(self, seed: int, name: str, rank: int) -> None:
        super().begin_run(seed, name, rank)
        self.residual = None

    def encode(self, array: Array) -> Message:
        accumulated = self._accumulated(array)
        message = self.compressor.encode(accumulated)
        self.residual = accumulated - self.compressor.decode(message)
        return message

    def add_up(self, array: Array, nodes: int, rank: int) -> AddingUp:
        result: Sum = yield from self.compressor.add_up(self._accumulated(array), nodes, rank)
        self.residual = result.left_out()
        return result

    def check(self, shape: tuple[int, ...], dtype: Any) -> None:
        super().check(shape, dtype)
        self._check_contraction(prod(shape))

    def _accumulated(self, array: Array) -> Array:
        self._check_contraction(array.size)
        return array.copy() if self.residual is None else array + self.residual

    def _check_contraction(self, size: int | None = None) -> None:
        """Raise ValueError unless the compressor leaves out less than it is given, as far as it says."""
        bound = self.compressor.squared_error(size)
        if bound is None or bound < 1:
            return
        better = self.compressor.contraction(size)
        raise ValueError(
            f"ErrorFeedback: the residual would grow without bound: the squared error of {self.compressor!r} may be "
            f"{bound:.3g} |x|^2{'' if size is None else f' for {size:,} numbers'}, but must be below |x|^2: "
            + ("use it by itself, if it is right on average" if better is None else f"use ErrorFeedback({better!r})")
        )
