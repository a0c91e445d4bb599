"""Sparse: the base of compressors that send some entries of a gradient and leave out the others."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from minidl.compress.compressor import Compressor
from minidl.compress.exchange import Gather, Request, SparseSum
from minidl.compress.message import Message
from minidl.compress.sparse_all_reduce import ALL_REDUCE, INDEX
from minidl.kernels import Array

LARGEST_SIZE = 1 << 32  # entries that a 32-bit index can tell apart


@dataclass(kw_only=True)
class Sparse(Compressor):
    """Sends the entries that `choose` picks, as pairs of a 32-bit index and a value; the rest counts as zero.

    Parameters
        all_reduce  how the nodes' messages are added up. "gather": every message goes to every node, while backward
                    goes on. "recursive_doubling" and "split": they are added up on the way, as dense vectors where
                    these are shorter (`sparse_all_reduce.py`), and begin when the sum is needed

    Message: the k indices in rising order (uint32), then the k values: (4 + itemsize) k bytes.
    """

    all_reduce: str = "gather"

    def __post_init__(self) -> None:
        if self.all_reduce not in ("gather", *ALL_REDUCE):
            choices = ", ".join(("gather", *ALL_REDUCE))
            raise ValueError(f"{type(self).__name__}: unknown all_reduce {self.all_reduce!r}: choose one of {choices}")

    def choose(self, flat: Array) -> Array:
        """The indices, in rising order, of the entries of a vector that are sent."""
        raise NotImplementedError(f"{type(self).__name__} does not say which entries are sent: define choose()")

    def encode(self, array: Array) -> Message:
        self.check(array.shape, array.dtype)
        flat = np.ascontiguousarray(array).reshape(-1)
        return pack(self.choose(flat), flat, array.shape)

    def decode(self, message: Message) -> Array:
        result = np.zeros(message.shape, message.dtype)
        indices, values = unpack(message)
        result.reshape(-1)[indices] = values
        return result

    def add_up_messages(self, message: Message, nodes: int) -> Generator[Request, Any, Array]:
        size = math.prod(message.shape)
        if self.all_reduce != "gather":
            total: Array = yield SparseSum(*unpack(message), size, self.all_reduce)
            return total.reshape(message.shape)
        length = self.message_bytes(message.shape, message.dtype)
        gathered = yield Gather(message.data, None if length is None else [length] * nodes)
        result = np.zeros(size, message.dtype)
        for data in gathered:  # in rank order, as the decoded messages would add up, but only where there is something
            indices, values = unpack(Message(data, message.shape, message.dtype))
            result[indices] += values
        return result.reshape(message.shape)

    def pairs(self, size: int) -> int | None:
        """The number of entries that are chosen of `size`; None if it depends on their values."""
        return None

    def message_bytes(self, shape: tuple[int, ...], dtype: Any) -> int | None:
        pairs = self.pairs(math.prod(shape))
        return None if pairs is None else pairs * (INDEX + np.dtype(dtype).itemsize)

    def check(self, shape: tuple[int, ...], dtype: Any) -> None:
        super().check(shape, dtype)
        if (size := math.prod(shape)) > LARGEST_SIZE:
            raise ValueError(
                f"{type(self).__name__}: an index has 32 bits, which cannot tell {size:,} entries apart: "
                f"compress parts of at most {LARGEST_SIZE:,}"
            )


def check_density(name: str, density: float) -> None:
    """Raise ValueError unless it is above 0 and at most 1."""
    if not 0 < density <= 1:
        raise ValueError(f"{name}: density must be above 0 and at most 1, got {density}")


def count(density: float, size: int) -> int:
    """The number of entries that are sent of `size`: rounded up, so that one is sent of each parameter at least."""
    return math.ceil(density * size * (1 - 1e-12))  # 0.07 * 100 is a little above 7


def pack(indices: Array, flat: Array, shape: tuple[int, ...]) -> Message:
    """These entries of the vector `flat`, as the message of an array of that shape."""
    pairs = indices.astype(np.uint32).view(np.uint8), flat[indices].view(np.uint8)
    return Message(np.concatenate(pairs), shape, flat.dtype)


def unpack(message: Message) -> tuple[Array, Array]:
    """The indices and the values of a message."""
    k = message.nbytes // (4 + message.dtype.itemsize)
    return message.data[: 4 * k].copy().view(np.uint32), message.data[4 * k :].copy().view(message.dtype)
