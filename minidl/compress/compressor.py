"""Compressor: the base of all ways to make a gradient smaller before it is sent. One file a method beside this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.compress.message import Message
from minidl.kernels import Array
from minidl.optim import Optimizer


class Compressor:
    """`encode` makes a Message of an array, `decode` the array that it stands for; `begin_all_reduce` sums over nodes.

    One instance serves one parameter: a strategy makes copies (`copy.deepcopy`), so what a compressor remembers between
    calls (a residual, a velocity) belongs to that parameter on that node. Random choices are drawn from
    `minidl.random.generator()`. What a strategy calls: before the run `check` and `check_optimizer`; at the beginning
    of an epoch `begin_epoch`; in every step, if `needs_norm`, `begin_step` once backward is done; then
    `begin_all_reduce`, for the parameters in the same order on every node.

    encodes_jointly: the nodes make the messages together, in `begin_all_reduce`; no node's message stands for its own
    array by itself. is_stateful: it remembers something that a checkpoint of the weights does not hold, so that a run
    cannot go on from there with the same bits. keeps_errors: what is left out is sent later. votes: what the nodes'
    messages add up to is a vote, not the sum of arrays, so that no other compressor can stand around it. needs_norm:
    `encode` has to know the norm of the whole gradient.
    """

    @property
    def encodes_jointly(self) -> bool:
        return False

    @property
    def is_stateful(self) -> bool:
        return False

    @property
    def keeps_errors(self) -> bool:
        return False

    @property
    def votes(self) -> bool:
        return False

    @property
    def needs_norm(self) -> bool:
        return False

    def sends_whole(self, shape: tuple[int, ...]) -> bool:
        """Whether arrays of this shape are sent as they are, so that nothing is left out."""
        return False

    def encode(self, array: Array) -> Message:
        """The array as a message; of floating-point numbers, of any shape."""
        raise NotImplementedError(f"{type(self).__name__} does not say how an array is encoded: define encode()")

    def decode(self, message: Message) -> Array:
        """The array that a message stands for, of the message's shape and dtype."""
        raise NotImplementedError(f"{type(self).__name__} does not say how a message is decoded: define decode()")

    def begin_all_reduce(self, array: Array, comm: Communicator) -> Callable[[], Array]:
        """Begin to add up the nodes' arrays, as compressed; the function that is returned waits for the sum.

        The same bits on every node. Methods that encode jointly override this.
        """
        return self.begin_sum(self.encode(array), comm)

    def begin_sum(self, message: Message, comm: Communicator) -> Callable[[], Array]:
        """Begin to add up what all nodes' messages stand for; the function that is returned waits for the sum.

        The same bits on every node. Every node sends its message to all others (an all-gather): two messages of sparse
        or quantized numbers do not add up to one of the same size. Methods for which they do override this.
        """
        gathered = comm.all_gather(message.data, async_op=True, label=type(self).__name__)

        def total() -> Array:
            first, *others = (Message(data, message.shape, message.dtype) for data in gathered.wait())
            result = self.decode(first)
            for other in others:
                result += self.decode(other)
            return result

        return total

    def begin_epoch(self, epoch: int) -> None:
        """Epoch number `epoch`, from 0, begins: for methods that change in the course of training."""

    def begin_step(self, norm: float, nodes: int) -> None:
        """This node's gradient of all parameters, one of `nodes` that add up, has this 2-norm: if `needs_norm`."""

    def check(self, shape: tuple[int, ...], dtype: Any) -> None:
        """Raise ValueError if arrays of this shape or dtype cannot be compressed in this way: whole numbers, say."""
        if not np.issubdtype(dtype, np.floating):
            raise ValueError(f"{type(self).__name__} compresses floating-point numbers, not {np.dtype(dtype)}")

    def check_optimizer(self, optimizer: Optimizer) -> None:
        """Raise ValueError if the sums must not be given to this optimizer."""
