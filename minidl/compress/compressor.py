"""Compressor: the base of all ways to make a gradient smaller before it is sent. One file a method beside this one."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.compress import exchange
from minidl.compress.exchange import AddingUp, Gather, Request, Sum
from minidl.compress.message import Message
from minidl.kernels import Array
from minidl.optim import Optimizer


class Compressor:
    """Makes a gradient smaller: `encode` turns an array into a Message, `decode` a message into an array.

    A subclass needs these two methods alone; every node then gets every node's message and adds up what they decode to.
    All other methods have defaults, for compressors that can do better.

    What a strategy calls, for a copy of the compressor (`copy.deepcopy`) that serves one parameter on one node, so that
    what it remembers between calls (a residual, a velocity) belongs to that parameter:

        check, check_optimizer    before the run, once for all nodes
        begin_run                 before the first step: who this copy is, for its random numbers
        begin_epoch               at the beginning of every epoch
        begin_step                in every step once backward is done, if `needs_norm`
        add_up                    in every step, for the parameters in the same order on every node

    Attributes
        encodes_jointly  nodes make the messages together, in `add_up`; no node's message stands for its own array
        is_stateful      it remembers something that a checkpoint of the weights does not hold, so that a run cannot
                         be resumed with the same bits
        keeps_errors     what is left out is sent later
        votes            the messages add up to a vote, not to a sum of arrays: no other compressor can stand around it
        needs_norm       `encode` has to know the norm of the whole gradient
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

    def encode(self, array: Array) -> Message:
        """The array as a message; of floating-point numbers, of any shape."""
        raise NotImplementedError(f"{type(self).__name__} does not say how an array is encoded: define encode()")

    def decode(self, message: Message) -> Array:
        """The array that a message stands for, of the message's shape and dtype."""
        raise NotImplementedError(f"{type(self).__name__} does not say how a message is decoded: define decode()")

    # Over the nodes

    def begin_all_reduce(self, array: Array, comm: Communicator, algorithm: str = "auto") -> Callable[[], Array]:
        """Begin to add up the nodes' arrays, as compressed; the function that is returned waits for the sum.

        The same bits on every node. Several parameters are added up together by `exchange.begin`.
        """
        adding_up = self.add_up(array, comm.size, comm.rank)
        finish = exchange.begin([adding_up], comm, algorithm, label=type(self).__name__)
        return lambda: finish()[0].total

    def add_up(self, array: Array, nodes: int, rank: int) -> AddingUp:
        """Add up the nodes' arrays, as compressed: a generator of requests to exchange something, see `exchange.py`.

        Encodes this node's array, then adds up the messages. Methods that encode jointly override this.
        """
        message = self.encode(array)
        total = yield from self.add_up_messages(message, nodes)
        return Sum(total, lambda: array - self.decode(message))

    def add_up_messages(self, message: Message, nodes: int) -> Generator[Request, Any, Array]:
        """Add up what all nodes' messages stand for.

        Every node sends its message to all others: two messages of sparse or quantized numbers do not add up to one of
        the same size. Methods for which they do override this.
        """
        length = self.message_bytes(message.shape, message.dtype)
        gathered = yield Gather(message.data, None if length is None else [length] * nodes)
        first, *others = (Message(data, message.shape, message.dtype) for data in gathered)
        result = np.array(self.decode(first))  # a copy: what is decoded may share memory with the message
        for other in others:
            result += self.decode(other)
        return result

    def message_bytes(self, shape: tuple[int, ...], dtype: Any) -> int | None:
        """The bytes of the message of any array of this shape and dtype; None if they depend on its values.

        Where it is None, lengths travel with the messages of parameters that are sent together: 4 bytes for each.
        """
        return None

    # How much is left out

    def squared_error(self, size: int | None = None) -> float | None:
        """The largest expected |x - decode(encode(x))|^2 / |x|^2 of an array x of this size, if it can be stated.

        size: None asks for a bound that holds for every size. Returns None where there is no statement: a compressor
        that does not define this method is taken at its user's word. Below 1, the compressor is a contraction, around
        which `ErrorFeedback` is stable; from 1 on, ErrorFeedback refuses it.
        """
        return None

    def contraction(self, size: int | None = None) -> Compressor | None:
        """A compressor of the same kind whose bound is below 1, to be used instead; None if there is none."""
        return None

    # What a strategy tells it

    def begin_run(self, seed: int, name: str, rank: int) -> None:
        """From here on this copy serves the parameter `name` on this rank in a run with this seed.

        It forgets what it remembers of earlier arrays: the caller may have encoded some before the run.
        """

    def begin_epoch(self, epoch: int) -> None:
        """Epoch number `epoch`, from 0, begins: for methods that change in the course of training."""

    def begin_step(self, norm: float, nodes: int) -> None:
        """This node's gradient of all parameters, one of `nodes` that add up, has this 2-norm: if `needs_norm`."""

    def check(self, shape: tuple[int, ...], dtype: Any) -> None:
        """Raise ValueError if arrays of this shape or dtype cannot be compressed in this way: whole numbers, say."""
        if not np.issubdtype(dtype, np.floating):
            name = np.dtype(dtype).name
            hint = ": keep the weights in float32, with amp.autocast for the activations" if name == "bfloat16" else ""
            raise ValueError(f"{type(self).__name__} compresses floating-point numbers, not {name}{hint}")

    def check_optimizer(self, optimizer: Optimizer) -> None:
        """Raise ValueError if the sums must not be given to this optimizer."""
