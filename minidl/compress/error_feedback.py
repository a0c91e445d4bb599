"""ErrorFeedback: what a compressor left out is kept, and added to the next gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from minidl.cluster.comm import Communicator
from minidl.compress.compressor import Compressor
from minidl.compress.message import Message
from minidl.compress.wrapper import Wrapper
from minidl.kernels import Array


@dataclass
class ErrorFeedback(Wrapper):
    """Any compressor with a memory of its errors: gradients arrive late, but none is lost.

        accumulated = gradient + residual
        message     = compressor.encode(accumulated)
        residual    = accumulated - compressor.decode(message)

    What was sent and the residual add up to the accumulated gradient: to the bit where values are sent as they are
    (TopK, Threshold, RandomK), else to rounding. So over a run the sum of what was sent and the last residual is the
    sum of all gradients. The residual holds gradients; the learning rate that applies is that of the step in which they
    are sent. Where the update itself, lr g, is accumulated (Karimireddy et al.), it is the rate of the step in which
    they were computed: the sum of lr g is conserved then. Both are the same as long as the rate is.

    Where nodes encode jointly (PowerSGD) the residual is what is missing from each node's share of the common sum:
    accumulated - sum / nodes. The shares' residuals then add up to what is missing from the sum.
    Of arrays that are sent as they are there is none.

    With a compressor that loses nothing it changes nothing. RandomK(unbiased=True), QSGD or TernGrad may be too wrong
    to be wrapped: where |x - decode(encode(x))| is not smaller than |x|, the residual grows.
    Source: Seide et al., 1-bit stochastic gradient descent (Interspeech 2014); Karimireddy et al., Error feedback fixes
    signSGD (arXiv:1901.09847), algorithm 2; of joint encoding, Vogels et al., PowerSGD (arXiv:1905.13727), algorithm 2.

    >>> import numpy as np
    >>> from minidl import compress
    >>> c = ErrorFeedback(compress.TopK(0.5))
    >>> for _ in range(2):
    ...     message = c.encode(np.array([3.0, 2.0]))
    ...     c.decode(message), c.residual
    (array([3., 0.]), array([0., 2.]))
    (array([0., 4.]), array([3., 0.]))

    Errors: TypeError for what is no compressor; ValueError for one that has a memory of its errors already.
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

    @property
    def is_stateful(self) -> bool:
        return True

    @property
    def keeps_errors(self) -> bool:
        return True

    def encode(self, array: Array) -> Message:
        accumulated = self._accumulated(array)
        message = self.compressor.encode(accumulated)
        self.residual = accumulated - self.compressor.decode(message)
        return message

    def begin_all_reduce(self, array: Array, comm: Communicator) -> Callable[[], Array]:
        if not self.encodes_jointly:
            return super().begin_all_reduce(array, comm)
        if self.compressor.sends_whole(array.shape):  # a node's difference from the mean is no error then
            return self.compressor.begin_all_reduce(array, comm)
        accumulated = self._accumulated(array)
        wait = self.compressor.begin_all_reduce(accumulated, comm)

        def total() -> Array:
            result = wait()
            self.residual = accumulated - result / comm.size
            return result

        return total

    def _accumulated(self, array: Array) -> Array:
        return array.copy() if self.residual is None else array + self.residual
