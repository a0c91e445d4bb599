"""Signum: every node votes for the direction of each weight, one bit per weight; the majority decides."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minidl.arguments import real_number
from minidl.compress.compressor import Compressor, Message, refuse_momentum
from minidl.compress.exchange import Request
from minidl.compress.quantizer import two_values
from minidl.kernels import Array
from minidl.optim import Optimizer


@dataclass
class Signum(Compressor):
    """SignSGD with momentum and majority vote: each weight moves by the learning rate, or stays in place after a tie.

        m = momentum m + (1 - momentum) gradient     on each node, for its own gradient
        send sign(m), one bit per number
        vote = sign(sum of all nodes' signs)         -1, 0 or 1; given to the optimizer in place of the gradient
        w = w - lr vote                              with plain SGD; its weight_decay is added to the vote

    Parameters
        momentum  factor of the old m, 0 <= momentum < 1; 0 is signSGD. A larger one averages over more steps

    Message: ceil(n / 8) bytes, to every other node.

    Notes
        With an even number of nodes a vote may end in a tie, which gives 0.
        Where m is exactly 0 or NaN it has no sign: it votes plus and minus in turn, so that a weight without gradients
        stays within lr of its initial value. A weight whose gradients become 0 still moves by lr per step until m is 0:
        about 1,000 steps with momentum 0.9 in float32.
        One bit cannot represent NaN or infinity, so divergence shows in the loss only.
        Each node has one vote, however many samples it has: without samples, its gradient is 0. A node that sends wrong
        signs has one vote, too; the vote is right as long as the majority of the others outvotes such nodes.
        Biased: where the gradient's sign usually differs from that of its mean, signSGD ascends (Karimireddy et al.,
        arXiv:1901.09847, counter-example 1), more surely with more nodes. Momentum averages before it takes the sign,
        which solves that example but not the bias in general. `ErrorFeedback(Signum())` is refused, since votes have no
        magnitude; `ErrorFeedback(Sign())` keeps magnitudes.
        The optimizer must have no momentum of its own.

    Raises
        ValueError  for a momentum out of range, an array of integers, an optimizer with momentum

    References
        Bernstein, Wang, Azizzadenesheli and Anandkumar, signSGD (arXiv:1802.04434), algorithms 2 and 3; Bernstein,
        Zhao, Azizzadenesheli and Anandkumar, signSGD with majority vote (arXiv:1810.05291), algorithm 1.

    Examples
        >>> c = Signum(momentum=0.5)
        >>> message = c.encode(np.array([1.0, -5.0, 3.0, -1.0]))
        >>> message.nbytes, c.decode(message)
        (1, array([ 1., -1.,  1., -1.]))
        >>> c.decode(c.encode(np.array([-1.0, 2.0, -1.0, 2.0])))
        array([-1., -1.,  1.,  1.])
    """

    is_stateful = True
    momentum: float = 0.9
    average: Array | None = field(default=None, init=False, repr=False, compare=False)
    _calls: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.momentum = real_number("Signum: momentum", self.momentum, at_least=0, below=1)

    def begin_run(self, seed: int, name: str, rank: int) -> None:
        self.average, self._calls = None, 0

    def encode(self, array: Array) -> Message:
        self.check(array.shape, array.dtype)
        gradient = array.reshape(-1)
        if self.average is None:
            self.average = np.zeros_like(gradient)
        kept = self.momentum * self.average
        is_stuck = (kept == self.average) & (np.abs(kept) < np.finfo(kept.dtype).tiny)
        kept[is_stuck] = 0  # the smallest numbers times the momentum round to themselves, and would never become 0
        self.average = kept + (1 - self.momentum) * gradient
        has_sign = (self.average > 0) | (self.average < 0)
        is_minus = np.where(has_sign, self.average < 0, bool(self._calls % 2))
        self._calls += 1
        return Message(np.packbits(is_minus), array.shape, array.dtype)

    def decode(self, message: Message) -> Array:
        """One node's votes: 1 or -1 per number."""
        is_minus = np.unpackbits(message.data, count=math.prod(message.shape))
        return two_values(is_minus, np.array([[1], [-1]], message.dtype)).reshape(message.shape)

    def add_up_messages(self, message: Message, nodes: int) -> Generator[Request, Any, Array]:
        votes = yield from super().add_up_messages(message, nodes)
        return np.sign(votes, out=votes)

    def message_bytes(self, shape: tuple[int, ...], dtype: Any) -> int:
        return -(-math.prod(shape) // 8)

    def check_optimizer(self, optimizer: Optimizer) -> None:
        refuse_momentum("Signum", optimizer, lr=0.001)
