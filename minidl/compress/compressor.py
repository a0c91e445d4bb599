"""Compressor: the base of all ways to make a gradient smaller before it is sent. One file a method beside this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minidl.cluster.comm import Communicator
from minidl.compress.message import Message
from minidl.kernels import Array


class Compressor:
    """`encode` makes a Message of an array, `decode` the array that it stands for; `begin_all_reduce` sums over nodes.

    One instance serves one parameter: a strategy makes copies (`copy.deepcopy`), so what a compressor remembers between
    calls (a residual, a velocity) belongs to that parameter on that node. Random choices are drawn from
    `minidl.random.generator()`.
    """

    def encode(self, array: Array) -> Message:
        """The array as a message; of floating-point numbers, of any shape."""
        raise NotImplementedError(f"{type(self).__name__} does not say how an array is encoded: define encode()")

    def decode(self, message: Message) -> Array:
        """The array that a message stands for, of the message's shape and dtype."""
        raise NotImplementedError(f"{type(self).__name__} does not say how a message is decoded: define decode()")

    def begin_all_reduce(self, array: Array, comm: Communicator) -> Callable[[], Array]:
        """Begin to add up what all nodes' messages stand for; the function that is returned waits for the sum.

        The same bits on every node. Every node sends its message to all others (an all-gather): two messages of sparse
        or quantized numbers do not add up to one of the same size. Methods for which they do override this.
        """
        message = self.encode(array)
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

    def check(self, shape: tuple[int, ...], dtype: Any) -> None:
        """Raise ValueError if arrays of this shape or dtype cannot be compressed in this way."""
