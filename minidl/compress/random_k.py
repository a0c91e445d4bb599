"""RandomK: sends entries chosen at random, the same on all nodes."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minidl import random
from minidl.arguments import whole_number
from minidl.compress.compressor import Message
from minidl.compress.exchange import AllReduce, Request
from minidl.compress.random_choices import RandomChoices
from minidl.compress.sparse import Sparse, check_density, count
from minidl.compress.sparse_all_reduce import scatter
from minidl.kernels import Array

HEADER = 8  # bytes


@dataclass
class RandomK(RandomChoices, Sparse):
    """Sends k = `density` n of n entries, chosen uniformly at random; all others are decoded to zero.

    Parameters
        density     fraction of each parameter's entries that is sent, 0 < density <= 1; k is rounded up. A larger one
                    sends more and leaves out less
        unbiased    False  sends x, with squared error (1 - k/n) |x|^2 on average: for `ErrorFeedback`
                    True   sends x n/k, whose expected value is x, with variance (n/k - 1) |x|^2
        seed        number  all nodes choose the same entries, new ones in each step. Indices are not sent; an ordinary
                            all-reduce adds up the values, 4 k bytes in float32
                    None    each node chooses for itself
        all_reduce  with seed None: "gather" (default), "recursive_doubling" or "split", as in `Sparse`

    Message: with a seed, the epoch and the number of the draw (two uint32), then k values: 8 + 4 k bytes in float32;
    the first 8 bytes are not sent in the all-reduce. Without a seed, k indices (uint32), then k values.

    Notes
        In a run the common choice depends on `seed`, the run's seed, the epoch, the step and the parameter's name;
        outside a run on `seed` and the number of arrays encoded so far.

    Raises
        ValueError  for a density out of range, a seed below 0, a seed together with an all_reduce that sends indices,
                    for integer arrays, for more than 2^32 entries

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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_density("RandomK", self.density)
        if self.seed is None:
            return
        self.seed = whole_number("RandomK: seed", self.seed, at_least=0, hint="None lets each node choose for itself")
        if self.all_reduce != "gather":
            raise ValueError(
                f"RandomK: with a seed no indices are sent and an ordinary all-reduce adds up the values: "
                f"all_reduce={self.all_reduce!r} needs seed=None"
            )

    def encode(self, array: Array) -> Message:
        factor = array.size / max(self.pairs(array.size), 1)
        scaled = array * array.dtype.type(factor) if self.unbiased else array
        if self.seed is None:
            return super().encode(scaled)
        self.check(array.shape, array.dtype)
        header = np.array(self._next_draw(), np.uint32)
        values = np.ascontiguousarray(scaled).reshape(-1)[self._common(header, array.size)]
        return Message(np.concatenate([header.view(np.uint8), values.view(np.uint8)]), array.shape, array.dtype)

    def entries(self, message: Message) -> tuple[Array, Array]:
        if self.seed is None:
            return super().entries(message)
        header, values = message.data[:HEADER].copy().view(np.uint32), message.data[HEADER:].copy()
        return self._common(header, math.prod(message.shape)), values.view(message.dtype)

    def add_up_messages(self, message: Message, nodes: int) -> Generator[Request, Any, Array]:
        if self.seed is None:
            return (yield from super().add_up_messages(message, nodes))
        indices, values = self.entries(message)
        total = yield AllReduce(values)
        return scatter(indices, total, math.prod(message.shape)).reshape(message.shape)

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
        """The entries that all nodes choose, given the epoch and draw in the header."""
        generator = self._common_choices(random.Purpose.COMMON_CHOICE, self.seed or 0, *header.tolist())
        return np.sort(generator.choice(size, self.pairs(size), replace=False))
