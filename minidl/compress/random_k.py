"""RandomK: send entries chosen at random, the same on all nodes."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from minidl import random
from minidl.compress.exchange import AllReduce, Request
from minidl.compress.message import Message
from minidl.compress.own_choices import OwnChoices
from minidl.compress.sparse import Sparse, check_density, count
from minidl.kernels import Array

HEADER = 8  # bytes


@dataclass
class RandomK(OwnChoices, Sparse):
    """Sends k = `density` n entries chosen at random, all sets equally likely; the rest counts as zero.

    Parameters
        density     fraction of the entries of each parameter, above 0 and at most 1; k is rounded up
        unbiased    True sends x n/k: the expected value is x, and the variance (n/k - 1) |x|^2. False sends x itself,
                    with the error (1 - k/n) |x|^2, and is made for `ErrorFeedback`
        seed        a number: all nodes choose the same entries, anew in every step, so indices need not travel, and
                    the values are added up by an ordinary all-reduce of 4 k bytes in float32. Within a run the choice
                    depends on this number, the run's seed, the epoch, the step and the parameter's name;
                    outside a run, on this number and on how many arrays this compressor has encoded.
                    None: every node chooses for itself
        all_reduce  without a seed: how messages are added up, as in `Sparse`

    Message: with a seed, epoch and number of the draw (two uint32), then k values: 8 + 4 k bytes in float32; without,
    k indices (uint32), then k values. In the all-reduce the header does not travel.

    Raises
        ValueError  for a density that is not above 0 and at most 1, a seed below 0, an all_reduce that needs indices
                    although there is a seed, for integers, for more than 2^32 entries

    References
        Stich, Cordonnier and Jaggi, Sparsified SGD with memory (arXiv:1809.07599), section 2.

    Examples
        >>> c = RandomK(0.5, unbiased=True)
        >>> message = c.encode(np.ones(4, dtype="float32"))
        >>> message.nbytes, sorted(c.decode(message).tolist())
        (16, [0.0, 0.0, 2.0, 2.0])
    """

    density: float
    unbiased: bool = False
    seed: int | None = 0
    _run: tuple[int, str] = field(default=(0, ""), init=False, repr=False, compare=False)  # seed, parameter's name
    _epoch: int = field(default=0, init=False, repr=False, compare=False)
    _draws: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_density("RandomK", self.density)
        if not (self.seed is None or (isinstance(self.seed, (int, np.integer)) and self.seed >= 0)):
            raise ValueError(f"RandomK: seed must be a whole number of at least 0, or None, got {self.seed!r}")
        self.seed = None if self.seed is None else int(self.seed)
        if self.seed is not None and self.all_reduce != "gather":
            raise ValueError(
                f"RandomK: with a seed the values are added up as dense vectors are: all_reduce={self.all_reduce!r} "
                "needs seed=None"
            )

    def encode(self, array: Array) -> Message:
        scaled = array * array.dtype.type(self._factor(array.size)) if self.unbiased else array
        if self.seed is None:
            return super().encode(scaled)
        self.check(array.shape, array.dtype)
        header = np.array([self._epoch, self._draws], np.uint32)
        self._draws += 1
        values = np.ascontiguousarray(scaled).reshape(-1)[self._common(header, array.size)]
        return Message(np.concatenate([header.view(np.uint8), values.view(np.uint8)]), array.shape, array.dtype)

    def decode(self, message: Message) -> Array:
        if self.seed is None:
            return super().decode(message)
        header, values = message.data[:HEADER], message.data[HEADER:]
        return self._spread(header.copy().view(np.uint32), values.copy().view(message.dtype), message.shape)

    def add_up_messages(self, message: Message, nodes: int) -> Generator[Request, Any, Array]:
        if self.seed is None:
            return (yield from super().add_up_messages(message, nodes))
        header, values = message.data[:HEADER].copy().view(np.uint32), message.data[HEADER:].copy()
        total = yield AllReduce(values.view(message.dtype))
        return self._spread(header, total, message.shape)

    def begin_run(self, seed: int, name: str, rank: int) -> None:
        super().begin_run(seed, name, rank)
        self._run = seed, name
        self._epoch, self._draws = 0, 0

    def begin_epoch(self, epoch: int) -> None:
        super().begin_epoch(epoch)
        self._epoch, self._draws = epoch, 0  # so that a run that is resumed draws the same entries

    def squared_error(self, size: int | None = None) -> float:
        sent = self.density if size is None else self.pairs(size) / size if size else 1.0
        return 1 / sent - 1 if self.unbiased else 1 - sent

    def contraction(self, size: int | None = None) -> RandomK:
        return replace(self, unbiased=False)

    def pairs(self, size: int) -> int:
        return count(self.density, size)

    def message_bytes(self, shape: tuple[int, ...], dtype: Any) -> int | None:
        if self.seed is None:
            return super().message_bytes(shape, dtype)
        return HEADER + self.pairs(math.prod(shape)) * np.dtype(dtype).itemsize

    def choose(self, flat: Array) -> Array:
        return np.sort(self.choices.choice(flat.size, self.pairs(flat.size), replace=False))

    def _common(self, header: Array, size: int) -> Array:
        """The entries that all nodes choose in this draw."""
        seed, name = self._run
        epoch, draw = header.tolist()
        generator = random.stream(random.Purpose.COMMON_CHOICE, seed, self.seed or 0, epoch, name, draw)
        return np.sort(generator.choice(size, self.pairs(size), replace=False))

    def _spread(self, header: Array, values: Array, shape: tuple[int, ...]) -> Array:
        result = np.zeros(shape, values.dtype)
        result.reshape(-1)[self._common(header, result.size)] = values
        return result

    def _factor(self, size: int) -> float:
        return size / max(self.pairs(size), 1)
