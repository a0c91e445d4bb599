"""Wrapper: the base of compressors that stand around another one."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from minidl.compress.compressor import Compressor
from minidl.compress.exchange import Request
from minidl.compress.message import Message
from minidl.kernels import Array
from minidl.optim import Optimizer


@dataclass
class Wrapper(Compressor):
    """A compressor around `compressor`, which does everything that a subclass does not define itself."""

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

    def encode(self, array: Array) -> Message:
        return self.compressor.encode(array)

    def decode(self, message: Message) -> Array:
        return self.compressor.decode(message)

    def add_up_messages(self, message: Message, nodes: int) -> Generator[Request, Any, Array]:
        return self.compressor.add_up_messages(message, nodes)

    def message_bytes(self, shape: tuple[int, ...], dtype: Any) -> int | None:
        return self.compressor.message_bytes(shape, dtype)

    def squared_error(self, size: int | None = None) -> float | None:
        return self.compressor.squared_error(size)

    def contraction(self, size: int | None = None) -> Compressor | None:
        inner = self.compressor.contraction(size)
        return None if inner is None else replace(self, compressor=inner)

    def begin_run(self, seed: int, name: str, rank: int) -> None:
        self.compressor.begin_run(seed, name, rank)

    def begin_epoch(self, epoch: int) -> None:
        self.compressor.begin_epoch(epoch)

    def begin_step(self, norm: float, nodes: int) -> None:
        self.compressor.begin_step(norm, nodes)

    def check(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.compressor.check(shape, dtype)

    def check_optimizer(self, optimizer: Optimizer) -> None:
        self.compressor.check_optimizer(optimizer)
