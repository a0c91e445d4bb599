"""Wrapper: the base of compressors that stand around another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from minidl.cluster.comm import Communicator
from minidl.compress.compressor import Compressor
from minidl.compress.message import Message
from minidl.kernels import Array
from minidl.optim import Optimizer


@dataclass
class Wrapper(Compressor):
    """A compressor around `compressor`, to which it hands on whatever a subclass does not do itself."""

    compressor: Compressor

    def check_is_no_vote(self) -> None:
        """Raise ValueError if the compressor votes: what it leaves out of an array is not defined then."""
        if self.compressor.votes:
            name = type(self.compressor).__name__
            raise ValueError(
                f"{type(self).__name__}: {name} sends votes, which do not add up to the array: use {name} by itself"
            )

    @property
    def encodes_jointly(self) -> bool:
        return self.compressor.encodes_jointly

    @property
    def is_stateful(self) -> bool:
        return self.compressor.is_stateful

    @property
    def keeps_errors(self) -> bool:
        return self.compressor.keeps_errors

    @property
    def votes(self) -> bool:
        return self.compressor.votes

    @property
    def needs_norm(self) -> bool:
        return self.compressor.needs_norm

    def sends_whole(self, shape: tuple[int, ...]) -> bool:
        return self.compressor.sends_whole(shape)

    def encode(self, array: Array) -> Message:
        return self.compressor.encode(array)

    def decode(self, message: Message) -> Array:
        return self.compressor.decode(message)

    def begin_sum(self, message: Message, comm: Communicator) -> Callable[[], Array]:
        return self.compressor.begin_sum(message, comm)

    def begin_epoch(self, epoch: int) -> None:
        self.compressor.begin_epoch(epoch)

    def begin_step(self, norm: float, nodes: int) -> None:
        self.compressor.begin_step(norm, nodes)

    def check(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.compressor.check(shape, dtype)

    def check_optimizer(self, optimizer: Optimizer) -> None:
        self.compressor.check_optimizer(optimizer)
