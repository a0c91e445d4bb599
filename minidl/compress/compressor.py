"""Compressor, the base class of all compressors, and Message, what it sends. The methods are in the other files."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.cluster.comm import Communicator
from minidl.compress import exchange
from minidl.compress.exchange import Exchange, Gather, Request, Sum
from minidl.kernels import Array
from minidl.optim import Optimizer


@dataclass(frozen=True)
class Message:
    """A compressed array.

    Attributes
        data   the bytes that are sent, no more and no fewer
        shape  shape of the array; known to sender and receiver, so it is not sent
        dtype  dtype of the array; not sent either
    """

    data: NDArray[np.uint8]
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    @property
    def nbytes(self) -> int:
        """Length of the message in bytes."""
        return self.data.nbytes


class Compressor:
    """Compresses a gradient before it is sent.

    A subclass must define `encode`, which turns an array into a Message, and `decode`, which turns it back. By default
    every node sends its message to all other nodes, and every node adds up the decoded messages. A subclass overrides
    the other methods to do better.

    A strategy makes one copy (`copy.deepcopy`) per parameter and node, so that state (a residual, a velocity) belongs
    to one parameter. It calls

        check, check_optimizer    once, before the run
        begin_run                 on each copy, before the first step
        begin_epoch               at the beginning of each epoch
        add_up                    in each step, for the parameters in the same order on every node

    Attributes
        is_stateful   the compressor has state that a checkpoint of the weights does not contain: a resumed run would
                      have different bits, so resuming is refused
        keeps_errors  what one message leaves out is sent in later ones
    """

    @property
    def is_stateful(self) -> bool:
        return False

    @property
    def keeps_errors(self) -> bool:
        return False

    def encode(self, array: Array) -> Message:
        """Compress an array of floating-point numbers, of any shape."""
        raise NotImplementedError(f"{type(self).__name__} does not say how an array is encoded: define encode()")

    def decode(self, message: Message) -> Array:
        """The array that a message represents, with the message's shape and dtype."""
        raise NotImplementedError(f"{type(self).__name__} does not say how a message is decoded: define decode()")

    # Sums over the nodes

    def begin_all_reduce(
        self, array: Array, comm: Communicator, algorithm: AllReduceAlgorithm = "auto"
    ) -> Callable[[], Array]:
        """Begin to add up the nodes' compressed arrays; returns a function that waits for the sum.

        The sum has the same bits on every node. `exchange.begin` adds up several parameters together.
        """
        adding_up = self.add_up(array, comm.size, comm.rank)
        finish = exchange.begin([adding_up], comm, algorithm, label=type(self).__name__)
        return lambda: finish()[0].total

    def add_up(self, array: Array, nodes: int, rank: int) -> Exchange:
        """Add up the nodes' compressed arrays: a generator that yields requests to communicate (`exchange.py`).

        The default encodes this node's array and calls `add_up_messages`. A compressor whose nodes produce their
        messages together overrides it.
        """
        message = encoded(self, array)
        total = yield from self.add_up_messages(message, nodes)
        return Sum(total, lambda: self.left_out(array, message))

    def left_out(self, array: Array, message: Message) -> Array:
        """The error array - decode(message). `array` may be overwritten, unless the message is a view of it."""
        is_view = np.may_share_memory(array, message.data)
        return np.asarray(np.subtract(array, self.decode(message), out=None if is_view else array))  # also of 0 axes

    def add_up_messages(self, message: Message, nodes: int) -> Generator[Request, Any, Array]:
        """Add up the arrays that the nodes' messages represent.

        The default gathers all messages on every node, since a sum of sparse or quantized arrays has no message of the
        same size. A compressor whose messages can be added up on the way overrides it.
        """
        first, *others = yield from self._gather(message, nodes)
        result = np.array(self.decode(first))  # a copy: the decoded array may share memory with the message
        for other in others:
            result += self.decode(other)
        return result

    def _gather(self, message: Message, nodes: int) -> Generator[Request, Any, list[Message]]:
        """The messages of all nodes, in rank order."""
        length = self.message_bytes(message.shape, message.dtype)
        gathered = yield Gather(message.data, None if length is None else [length] * nodes)
        return [Message(data, message.shape, message.dtype) for data in gathered]

    def message_bytes(self, shape: tuple[int, ...], dtype: Any) -> int | None:
        """Bytes of a message for an array of this shape and dtype; None if they depend on the array's values.

        Where it is None, messages that travel together are preceded by their lengths, 4 bytes each.
        """
        return None

    # Bound on the error

    def squared_error(self, size: int | None = None) -> float | None:
        """Upper bound on the expected |x - decode(encode(x))|^2 / |x|^2 for arrays x of `size` numbers.

        With size None, the bound holds for every size. Returns None if no bound is known, which `ErrorFeedback` accepts
        without a check. A compressor with a bound below 1 is a contraction, for which `ErrorFeedback` is stable; it
        refuses a bound of 1 or more.
        """
        return None

    def contraction(self, size: int | None = None) -> Compressor | None:
        """A compressor of the same kind with a bound below 1, which error messages recommend; None if there is none."""
        return None

    # The course of a run

    def begin_run(self, seed: int, name: str, rank: int) -> None:
        """Begin a run with this seed, for the parameter `name` on this rank: reset all state of earlier arrays."""

    def begin_epoch(self, epoch: int) -> None:
        """Begin epoch number `epoch`, counted from 0."""

    def check(self, shape: tuple[int, ...], dtype: Any) -> None:
        """Raise ValueError if arrays of this shape or dtype cannot be compressed: integers, for example."""
        if not np.issubdtype(dtype, np.floating):
            name = np.dtype(dtype).name
            hint = ": keep the weights in float32, with amp.autocast for the activations" if name == "bfloat16" else ""
            raise ValueError(f"{type(self).__name__} compresses floating-point numbers, not {name}{hint}")

    def check_optimizer(self, optimizer: Optimizer) -> None:
        """Raise ValueError if this optimizer must not be used with the compressor."""


def encoded(compressor: Compressor, array: Array) -> Message:
    """`compressor.encode(array)`; raises TypeError if that is not a Message."""
    message = compressor.encode(array)
    if not isinstance(message, Message):
        raise TypeError(
            f"{type(compressor).__name__}: encode() must return a compress.Message, with the bytes to send and the "
            f"shape and dtype of the array, got {type(message).__name__}"
        )
    return message


def refuse_momentum(compressor: str, optimizer: Optimizer, lr: float) -> None:
    """Raise ValueError if the optimizer has momentum; for compressors that apply momentum themselves."""
    if any(group.get("momentum") or "betas" in group for group in optimizer.param_groups):
        raise ValueError(
            f"{compressor} has momentum of its own, and so has the optimizer {type(optimizer).__name__}: "
            f"give momentum to {compressor} alone, as in optim.SGD(parameters, lr={lr})"
        )
