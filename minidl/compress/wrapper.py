"""Wrapper: the base class of compressors that use another compressor."""

from __future__ import annotations

from typing import Any

from minidl.compress.compressor import Compressor, Message, encoded
from minidl.compress.signum import Signum
from minidl.kernels import Array
from minidl.optim import Optimizer


class Wrapper(Compressor):
    """Delegates to `compressor` whatever a subclass does not define."""

    compressor: Compressor

    def check_is_no_vote(self) -> None:
        """Raise ValueError for Signum: its message does not represent the array, so its error is undefined."""
        if isinstance(self.compressor, Signum):
            name = type(self.compressor).__name__
            raise ValueError(
                f"{type(self).__name__}: {name} sends votes, which do not add up to the array: use {name} by itself"
            )

    @property
    def is_stateful(self) -> bool:
        return self.compressor.is_stateful

    @property
    def keeps_errors(self) -> bool:
        return self.compressor.keeps_errors

    def encode(self, array: Array) -> Message:
        return encoded(self.compressor, array)

    def decode(self, message: Message) -> Array:
        return self.compressor.decode(message)

    def message_bytes(self, shape: tuple[int, ...], dtype: Any) -> int | None:
        return self.compressor.message_bytes(shape, dtype)

    def squared_error(self, size: int | None = None) -> float | None:
        return self.compressor.squared_error(size)

    def begin_run(self, seed: int, name: str, rank: int) -> None:
        self.compressor.begin_run(seed, name, rank)

    def begin_epoch(self, epoch: int) -> None:
        self.compressor.begin_epoch(epoch)

    def check(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.compressor.check(shape, dtype)

    def check_optimizer(self, optimizer: Optimizer) -> None:
        self.compressor.check_optimizer(optimizer)
