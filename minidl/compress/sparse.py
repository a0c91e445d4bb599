"""Sparse: the base class of compressors that send some entries of a gradient and leave out the others."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from minidl.arguments import one_of, real_number
from minidl.compress.compressor import Compressor, Message
from minidl.compress.exchange import Request, SparseSum
from minidl.compress.sparse_all_reduce import ALL_REDUCE, INDEX, scatter
from minidl.kernels import Array

LARGEST_SIZE = 1 << 32  # entries that a 32-bit index can address


@dataclass(kw_only=True)
class Sparse(Compressor):
    """Sends the entries that `choose` selects, each as an index and a value; all others are decoded to zero.

    Parameters
        all_reduce  how the nodes' messages are added up
                    "gather"              every node gets every message; overlaps backward
                    "recursive_doubling"  added up on the way, for few entries (`sparse_all_reduce.py`)
                    "split"               added up on the way, for many entries
                    The last two begin when the caller waits for the sum, and send dense vectors where they are shorter

    Message: the k indices in rising order (uint32), then the k values: (4 + itemsize) k bytes. A subclass defines
    `choose`, and may define `pairs` and `squared_error`.

    Examples
        >>> class First(Sparse):
        ...     def choose(self, flat):
        ...         return np.arange(2)
        >>> c = First()
        >>> message = c.encode(np.array([1.0, -5.0, 3.0, 0.5], dtype="float32"))
        >>> message.nbytes, c.decode(message)
        (16, array([ 1., -5.,  0.,  0.], dtype=float32))
    """

    all_reduce: str = "gather"

    def __post_init__(self) -> None:
        one_of(f"{type(self).__name__}: all_reduce", self.all_reduce, ("gather", *ALL_REDUCE))

    def choose(self, flat: Array) -> Array:
        """The indices of the entries of a vector that are sent, in rising order."""
        raise NotImplementedError(f"{type(self).__name__} does not say which entries are sent: define choose()")

    def encode(self, array: Array) -> Message:
        self.check(array.shape, array.dtype)
        flat = np.ascontiguousarray(array).reshape(-1)
        return pack(self.choose(flat), flat, array.shape)

    def decode(self, message: Message) -> Array:
        return scatter(*self.entries(message), math.prod(message.shape)).reshape(message.shape)

    def left_out(self, array: Array, message: Message) -> Array:
        flat = np.ascontiguousarray(array).reshape(-1)
        indices, values = self.entries(message)
        flat[indices] -= values  # the other entries are decoded to zero
        return flat.reshape(array.shape)

    def entries(self, message: Message) -> tuple[Array, Array]:
        """The indices and the values of the entries that were sent."""
        return unpack(message)

    def add_up_messages(self, message: Message, nodes: int) -> Generator[Request, Any, Array]:
        size = math.prod(message.shape)
        if self.all_reduce != "gather":
            total: Array = yield SparseSum(*unpack(message), size, self.all_reduce)
            return total.reshape(message.shape)
        gathered = yield from self._gather(message, nodes)
        result = np.zeros(size, message.dtype)
        for indices, values in map(unpack, gathered):  # as adding decoded messages, but without their zeros
            result[indices] += values
        return result.reshape(message.shape)

    def pairs(self, size: int) -> int | None:
        """The number of entries sent out of `size`; None if it depends on the values."""
        return None

    def message_bytes(self, shape: tuple[int, ...], dtype: Any) -> int | None:
        pairs = self.pairs(math.prod(shape))
        return None if pairs is None else pairs * (INDEX + np.dtype(dtype).itemsize)

    def check(self, shape: tuple[int, ...], dtype: Any) -> None:
        super().check(shape, dtype)
        if (size := math.prod(shape)) > LARGEST_SIZE:
            raise ValueError(
                f"{type(self).__name__}: an index has 32 bits, which cannot tell {size:,} entries apart: "
                f"compress arrays of at most {LARGEST_SIZE:,}"
            )


def check_density(compressor: str, density: float) -> None:
    """Raise an error unless the density is above 0 and at most 1."""
    real_number(f"{compressor}: density", density, above=0, at_most=1)


def count(density: float, size: int) -> int:
    """The number of entries sent out of `size`: rounded up, so that every parameter sends at least one."""
    return math.ceil(density * size * (1 - 1e-12))  # the factor because 0.07 * 100 is a little above 7


def pack(indices: Array, flat: Array, shape: tuple[int, ...]) -> Message:
    """The message with these entries of the vector `flat`, for an array of this shape."""
    pairs = indices.astype(np.uint32).view(np.uint8), flat[indices].view(np.uint8)
    return Message(np.concatenate(pairs), shape, flat.dtype)


def unpack(message: Message) -> tuple[Array, Array]:
    """The indices and the values in a message."""
    k = message.nbytes // (INDEX + message.dtype.itemsize)
    return message.data[: INDEX * k].copy().view(np.uint32), message.data[INDEX * k :].copy().view(message.dtype)
