"""ErrorFeedback: keeps what a compressor leaves out and adds it to the next gradient."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from minidl.compress.compressor import Compressor, Message
from minidl.compress.exchange import Exchange, Sum
from minidl.compress.wrapper import Wrapper
from minidl.kernels import Array


@dataclass
class ErrorFeedback(Wrapper):
    """Adds what a compressor has left out to the next gradient, so that gradients may be late but none is lost.

        accumulated = gradient + residual
        message     = compressor.encode(accumulated)
        residual    = accumulated - compressor.decode(message)

    Parameters
        compressor  a contraction: E |x - decode(encode(x))|^2 <= (1 - delta) |x|^2 for some delta > 0. With any other
                    the residual may grow without bound

    Which compressors are accepted
        TopK, RandomK, Sign, OneBit     contractions, as is Half("bf16"). Residuals are many times the gradient where
                                        the contraction is weak (see Sign)
        QSGD                            contraction if min(d / (4 s^2), sqrt(d) / s) < 1, for s levels and buckets of d
                                        numbers; refused otherwise
        RandomK(unbiased=True)          contraction at a density above 1/2; refused otherwise
        TernGrad                        refused: its squared error is (sqrt(n) - 1) / 2 |x|^2 for some x of n numbers
        Signum                          refused: its messages do not represent the gradient
        Threshold, Half("fp16")         accepted: a constant bounds the error of each number
        PowerSGD                        accepted: its error is a projection of x, never larger than x. Residuals are
                                        bounded unless differences between nodes always cancel (see there)
        Lossless, QuantizedAllReduce    as the compressor that they wrap; residuals in QuantizedAllReduce may grow with
                                        the number of nodes (see there)
        a subclass of your own          as its `squared_error` says; accepted without a check if that is None

    QSGD with a given bucket is checked when ErrorFeedback is made, as if every parameter filled a bucket. With
    `bucket=None`, d is the size of the parameter, and the check is made before the run.

    Notes
        Message and residual add up to the accumulated gradient: to the bit where values are sent unchanged (TopK,
        Threshold, RandomK), otherwise to rounding. Over a run, everything sent and the last residual add up to the sum
        of all gradients.
        `residual` is written into by the next `encode` or sum: keep a copy of it, if you want to compare.
        If the compressor raises an error, the residual may contain the gradient already: begin a new run.
        The residual holds gradients, to which the learning rate of the step applies in which they are sent. Karimireddy
        et al. accumulate lr g, with the rate of the step in which g was computed: equal while the rate is constant.
        Where nodes encode together (PowerSGD, QuantizedAllReduce), each node keeps the error of its own encoding. The
        residuals of all nodes add up to the error of the sum.

    Raises
        TypeError   if `compressor` is not a Compressor
        ValueError  if it keeps its errors already, or is not a contraction

    References
        Seide et al., 1-bit stochastic gradient descent (Interspeech 2014); Karimireddy et al., Error feedback fixes
        signSGD (arXiv:1901.09847), algorithm 2 and assumption A; for nodes that encode together, Vogels et al.,
        PowerSGD (arXiv:1905.13727), algorithm 2.

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

    is_stateful, keeps_errors = True, True
    compressor: Compressor
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

    def begin_run(self, seed: int, name: str, rank: int) -> None:
        super().begin_run(seed, name, rank)
        self.residual = None

    def encode(self, array: Array) -> Message:
        accumulated = self._accumulated(array)
        message = super().encode(accumulated)
        self.residual = self.compressor.left_out(accumulated, message)
        return message

    def add_up(self, array: Array, nodes: int, rank: int) -> Exchange:
        result: Sum = yield from self.compressor.add_up(self._accumulated(array), nodes, rank)
        self.residual = result.left_out()
        return result

    def check(self, shape: tuple[int, ...], dtype: Any) -> None:
        super().check(shape, dtype)
        self._check_contraction(prod(shape))

    def _accumulated(self, array: Array) -> Array:
        self._check_contraction(array.size)
        if self.residual is None:
            return np.array(array)
        is_alike = self.residual.dtype == array.dtype  # then its memory is used again
        return np.asarray(np.add(array, self.residual, out=self.residual if is_alike else None))

    def _check_contraction(self, size: int | None = None) -> None:
        """Raise ValueError if the compressor states a bound on its squared error that is 1 or more."""
        bound = self.compressor.squared_error(size)
        if bound is None or bound < 1:
            return
        better = self.compressor.contraction(size)
        raise ValueError(
            f"ErrorFeedback: the residual would grow without bound: the squared error of {self.compressor!r} may be "
            f"{bound:.3g} |x|^2{'' if size is None else f' for {size:,} numbers'}, but must be below |x|^2: "
            + ("use it by itself, if it is right on average" if better is None else f"use ErrorFeedback({better!r})")
        )
