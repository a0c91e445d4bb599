"""Signum: every node votes, one bit a number, for the direction of each weight; the majority decides."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minidl.compress.compressor import Compressor
from minidl.compress.exchange import Request
from minidl.compress.message import Message
from minidl.kernels import Array
from minidl.optim import Optimizer


@dataclass
class Signum(Compressor):
    """SignSGD with momentum, by majority vote: all weights move by the learning rate, or not at all.

        m = momentum m + (1 - momentum) gradient     on every node, with its own gradient
        send sign(m), one bit a number
        vote = sign(sum of all nodes' signs)         -1, 0 or 1: what the optimizer gets as gradient
        w = w - lr vote                              with plain SGD; its weight_decay is added to the vote

    Parameters
        momentum  share of the past sum that a node keeps, at least 0 and below 1; 0 is signSGD

    Notes
        A tie, which only an even number of nodes can have, is the vote 0.
        A number of m that is exactly 0 has no sign: it votes plus and minus in turn, so that a weight without gradient
        stays within lr of where it is. NaN has no sign either and votes likewise.
        A bit cannot stand for NaN or infinity: divergence shows in the loss alone. Both stay in a node's momentum; an
        infinity votes with its sign from then on.
        Every node has one vote, whatever the number of its samples. One without samples in a ragged last minibatch has
        a gradient of 0, and so votes with the sign of its momentum.
        Since magnitudes are not sent, a node that sends what it likes, flipped or scaled signs say, has one vote only:
        the vote is right as long as a majority of the other nodes outvotes the adversaries.
        Biased: where the gradient is skewed, so that its sign differs from that of its mean most of the time, votes
        without momentum climb (Karimireddy et al., arXiv:1901.09847, counter-example 1), with many nodes all the more
        surely. Momentum averages before it takes the sign, which mends that example but not the bias. Error feedback
        cannot stand around votes, which have lost all magnitudes; `ErrorFeedback(Sign())` keeps them.
        The optimizer must have no momentum of its own.

    Message: a bit a number, ceil(n / 8) bytes, to every other node.

    Raises
        ValueError  a momentum out of its range, an array of integers, an optimizer with momentum

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

    momentum: float = 0.9
    average: Array | None = field(default=None, init=False, repr=False, compare=False)
    _calls: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.momentum < 1:
            raise ValueError(f"Signum: momentum must be at least 0 and below 1, got {self.momentum}")

    @property
    def is_stateful(self) -> bool:
        return True

    @property
    def votes(self) -> bool:
        return True

    def begin_run(self, seed: int, name: str, rank: int) -> None:
        self.average, self._calls = None, 0

    def encode(self, array: Array) -> Message:
        self.check(array.shape, array.dtype)
        gradient = array.reshape(-1)
        if self.average is None:
            self.average = np.zeros_like(gradient)
        self.average *= self.momentum
        self.average += (1 - self.momentum) * gradient
        has_sign = (self.average > 0) | (self.average < 0)
        is_minus = np.where(has_sign, self.average < 0, bool(self._calls % 2))
        self._calls += 1
        return Message(np.packbits(is_minus), array.shape, array.dtype)

    def decode(self, message: Message) -> Array:
        """One node's votes: 1 or -1 for each number."""
        is_minus = np.unpackbits(message.data, count=int(np.prod(message.shape))).reshape(message.shape)
        return np.where(is_minus, -1, 1).astype(message.dtype)

    def add_up_messages(self, message: Message, nodes: int) -> Generator[Request, Any, Array]:
        votes = yield from super().add_up_messages(message, nodes)
        return np.sign(votes, out=votes)

    def message_bytes(self, shape: tuple[int, ...], dtype: Any) -> int:
        return -(-math.prod(shape) // 8)

    def check_optimizer(self, optimizer: Optimizer) -> None:
        if any(group.get("momentum") or "betas" in group for group in optimizer.param_groups):
            raise ValueError(
                f"Signum has momentum of its own, and so has the optimizer {type(optimizer).__name__}: "
                "give momentum to Signum alone, as in optim.SGD(parameters, lr=0.001)"
            )
