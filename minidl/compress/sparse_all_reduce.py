"""Sparse all-reduce: sparse vectors are added up on the way, so that no rank forwards all that it receives.

If p ranks each choose k of n entries, gathering sends (p - 1) k pairs per rank. The sum has fewer pairs where the
choices overlap, and once it fills up a dense vector is shorter than pairs. The two all-reduces below exploit both. They
are plain functions of messages between two ranks and return the dense sum, with the same bits on every rank. In a
simulation their messages take time; their additions take none.

Wire format of a vector of n entries: k pairs of a 32-bit index and a value if these take fewer bytes than n values,
else the n values. The length of the message tells which. If every rank chooses each entry independently with
probability d, the sum over p ranks has density 1 - (1 - d)^p.

Source: Renggli et al., SparCML: High-performance sparse communication for machine learning (SC'19).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from minidl.cluster.collectives import all_gather_ring, all_to_all_pairwise
from minidl.cluster.collectives.partition import split
from minidl.cluster.collectives.point_to_point import PointToPoint
from minidl.kernels import Array

INDEX = 4  # bytes


@dataclass(frozen=True)
class Stream:
    """A vector of `size` entries: `values` at rising `indices`, zero elsewhere; dense if `indices` is None."""

    size: int
    indices: Array | None
    values: Array

    @classmethod
    def of_pairs(cls, size: int, indices: Array, values: Array) -> Stream:
        """Make a sparse stream, or a dense one if that is not longer."""
        if is_dense_shorter(len(indices), size, values.itemsize):
            return cls(size, None, scatter(indices, values, size))
        return cls(size, indices, values)

    @classmethod
    def from_bytes(cls, data: Array, size: int, dtype: np.dtype[np.generic]) -> Stream:
        """Read what `to_bytes` wrote, for a vector of this size and dtype."""
        if data.nbytes == size * dtype.itemsize:
            return cls(size, None, data.view(dtype))
        k = data.nbytes // (INDEX + dtype.itemsize)
        return cls(size, data[: INDEX * k].view(np.uint32), data[INDEX * k :].copy().view(dtype))

    def to_bytes(self) -> Array:
        """Return the message, in the wire format above."""
        values = self.values.view(np.uint8)
        return values if self.indices is None else np.concatenate([self.indices.view(np.uint8), values])

    def dense(self) -> Array:
        """All entries, zeros included."""
        return self.values if self.indices is None else scatter(self.indices, self.values, self.size)

    def __add__(self, other: Stream) -> Stream:
        if self.indices is None or other.indices is None:
            return Stream(self.size, None, self.dense() + other.dense())
        indices = np.concatenate([self.indices, other.indices])
        order = np.argsort(indices, kind="stable")  # a merge: both are sorted
        indices = indices[order]
        is_first = np.ones(len(indices), bool)
        is_first[1:] = indices[1:] != indices[:-1]
        values = np.add.reduceat(np.concatenate([self.values, other.values])[order], np.flatnonzero(is_first))
        return Stream.of_pairs(self.size, indices[is_first], values)

    def slices(self, count: int) -> list[Stream]:
        """`count` slices, cut as by `np.array_split`; the indices of each start from 0."""
        if self.indices is None:
            return [Stream(len(values), None, values) for values in split(self.values, count)]
        sizes = [len(entries) for entries in split(np.broadcast_to(np.uint8(0), self.size), count)]
        starts = np.cumsum([0, *sizes])
        ends = np.searchsorted(self.indices, starts)
        return [
            Stream.of_pairs(size, (self.indices[a:b] - start).astype(np.uint32), self.values[a:b])
            for size, start, a, b in zip(sizes, starts[:-1], ends, ends[1:], strict=False)
        ]


def scatter(indices: Array, values: Array, size: int) -> Array:
    """A vector of `size` entries with `values` at `indices`, zero elsewhere."""
    result = np.zeros(size, values.dtype)
    result[indices] = values
    return result


def is_dense_shorter(pairs: int, size: int, itemsize: int) -> bool:
    """Whether `size` values take no more bytes than `pairs` pairs of an index and a value."""
    return pairs * (INDEX + itemsize) >= size * itemsize


def recursive_doubling(comm: PointToPoint, indices: Array, values: Array, size: int) -> Array:
    """Partners exchange their sums and add them: after round i, groups of 2^i ranks have the same sum. For few pairs.

    lg p messages per rank: of k, 2 k, 4 k ... pairs if no choices overlap, of k pairs each if all choices are equal. If
    p is not a power of two, let f be the largest power below it: rank f + i first sends its vector to rank i, and
    receives the result at the end. SparCML's SSAR_Recursive_double.
    """
    p, me = comm.size, comm.rank
    mine = Stream.of_pairs(size, indices, values)
    first = 1 << p.bit_length() - 1
    if me >= first:
        comm.send(mine.to_bytes(), me - first)
        return Stream.from_bytes(comm.recv(me - first), size, values.dtype).dense()
    if me + first < p:
        mine += Stream.from_bytes(comm.recv(me + first), size, values.dtype)
    distance = 1
    while distance < first:
        partner = me ^ distance
        mine += Stream.from_bytes(comm.sendrecv(mine.to_bytes(), partner, partner), size, values.dtype)
        distance *= 2  # a + b has the bits of b + a, so partners need no order
    if me + first < p:
        comm.send(mine.to_bytes(), me + first)
    return mine.dense()


def split_all_gather(comm: PointToPoint, indices: Array, values: Array, size: int) -> Array:
    """All-to-all of slices; rank i adds up slice i in rank order; all-gather of the sums. For many pairs.

    2 (p - 1) messages per rank. At most k pairs in the all-to-all and about (p - 1)/p K in the all-gather, for a sum of
    K pairs; slices that fill up are sent dense. SparCML's SSAR_Split_allgather, with dense slices DSAR_Split_allgather.
    """
    slices = Stream.of_pairs(size, indices, values).slices(comm.size)
    shares = all_to_all_pairwise(comm, [one.to_bytes() for one in slices])
    own, *others = (Stream.from_bytes(share, slices[comm.rank].size, values.dtype) for share in shares)
    for share in others:
        own += share
    sums = all_gather_ring(comm, own.to_bytes())
    total = [Stream.from_bytes(data, one.size, values.dtype).dense() for data, one in zip(sums, slices, strict=True)]
    return np.concatenate(total)


ALL_REDUCE: dict[str, Callable[[Any, Array, Array, int], Array]] = {
    "recursive_doubling": recursive_doubling,
    "split": split_all_gather,
}
