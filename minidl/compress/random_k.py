"""RandomK: send entries chosen at random, the same on all nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from minidl import random
from minidl.cluster.comm import Communicator
from minidl.compress.message import Message
from minidl.compress.sparse import Sparse, check_density, count
from minidl.kernels import Array

HEADER = 8  # bytes


@dataclass
class RandomK(Sparse):
    """k = `density` n entries chosen at random, all sets equally likely; the rest counts as zero.

    unbiased: send x n/k, so that the expected value is x, at a variance of (n/k - 1) |x|^2. Otherwise x itself: to be
    wrapped in `ErrorFeedback`, which an enlarged x would make diverge.
    seed: a number from which all nodes draw the same entries, anew in every step. Then the indices need not travel,
    and the values add up as dense vectors of length k do, in an ordinary all-reduce of 4 k bytes in float32. None:
    every node draws its own from `minidl.random.generator()`.
    Message: with a seed, epoch and number of the draw (two uint32), then k values: 8 + 4 k bytes in float32; without,
    k indices (uint32), then k values. all_reduce: without a seed, as in `Sparse`.
    Source: Stich, Cordonnier and Jaggi, Sparsified SGD with memory (arXiv:1809.07599), section 2.

    >>> c = RandomK(0.5, unbiased=True)
    >>> message = c.encode(np.ones(4, dtype="float32"))
    >>> message.nbytes, sorted(c.decode(message).tolist())
    (16, [0.0, 0.0, 2.0, 2.0])

    Errors: ValueError for a density that is not above 0 and at most 1, a seed below 0, an all_reduce that needs indices
    although there is a seed, for integers, for more than 2^32 entries.
    """

    density: float
    unbiased: bool = False
    seed: int | None = 0
    _epoch: int = field(default=0, init=False, repr=False, compare=False)
    _draws: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_density("RandomK", self.density)
        if not (self.seed is None or (isinstance(self.seed, int) and self.seed >= 0)):
            raise ValueError(f"RandomK: seed must be a whole number of at least 0, or None, got {self.seed!r}")
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

    def begin_sum(self, message: Message, comm: Communicator) -> Callable[[], Array]:
        if self.seed is None:
            return super().begin_sum(message, comm)
        header, values = message.data[:HEADER].copy().view(np.uint32), message.data[HEADER:].copy()
        work = comm.all_reduce(values.view(message.dtype), async_op=True, label="RandomK")
        return lambda: self._spread(header, work.wait(), message.shape)

    def begin_epoch(self, epoch: int) -> None:
        self._epoch, self._draws = epoch, 0  # so that a run that is resumed draws the same entries

    def choose(self, flat: Array) -> Array:
        return np.sort(random.generator().choice(flat.size, count(self.density, flat.size), replace=False))

    def _common(self, header: Array, size: int) -> Array:
        """The entries that all nodes choose in this draw."""
        generator = np.random.default_rng((self.seed, *header.tolist()))
        return np.sort(generator.choice(size, count(self.density, size), replace=False))

    def _spread(self, header: Array, values: Array, shape: tuple[int, ...]) -> Array:
        result = np.zeros(shape, values.dtype)
        result.reshape(-1)[self._common(header, result.size)] = values
        return result

    def _factor(self, size: int) -> float:
        return size / max(count(self.density, size), 1)
