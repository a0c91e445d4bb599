"""Sparse all-reduce: sparse vectors are added up on the way, so that no rank has to forward all that it receives.

Where p nodes each choose k of n entries, all messages to everybody are (p - 1) k pairs a node. The sum has fewer where
the choices overlap, and where it fills up a dense vector is shorter than pairs. Hence two ways, which go over from
sparse to dense as soon as that is shorter. Both are plain functions of messages between two ranks; they return the
dense sum, the same bits on every rank. In a simulation the messages take time, adding up takes none.

On the wire a vector of n entries is k pairs of a 32-bit index and a value if these are fewer bytes than n values, else
the n values: its length tells which. If each entry is chosen with probability d on each rank by itself, the sum over P
ranks has the density 1 - (1 - d)^P.

Source: Renggli et al., SparCML: High-performance sparse communication for machine learning (SC'19).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from minidl.cluster.collectives.partition import split
from minidl.cluster.messages import Messages
from minidl.kernels import Array

INDEX = 4  # bytes


@dataclass(frozen=True)
class Stream:
    """A vector of `size` entries: `values` at rising `indices`; without indices, all of them."""

    size: int
    indices: Array | None
    values: Array

    @classmethod
    def of_pairs(cls, size: int, indices: Array, values: Array) -> Stream:
        """Sparse, or dense if that is not longer."""
        if is_dense_shorter(len(indices), size, values.itemsize):
            dense = np.zeros(size, values.dtype)
            dense[indices] = values
            return cls(size, None, dense)
        return cls(size, indices, values)

    @classmethod
    def from_bytes(cls, data: Array, size: int, dtype: np.dtype[np.generic]) -> Stream:
        """What `to_bytes` has made of a vector of that size and dtype."""
        if data.nbytes == size * dtype.itemsize:
            return cls(size, None, data.view(dtype))
        k = data.nbytes // (INDEX + dtype.itemsize)
        return cls(size, data[: INDEX * k].view(np.uint32), data[INDEX * k :].copy().view(dtype))

    def to_bytes(self) -> Array:
        """The bytes that go over the wire."""
        values = self.values.view(np.uint8)
        return values if self.indices is None else np.concatenate([self.indices.view(np.uint8), values])

    def dense(self) -> Array:
        """All entries."""
        if self.indices is None:
            return self.values
        result = np.zeros(self.size, self.values.dtype)
        result[self.indices] = self.values
        return result

    def __add__(self, other: Stream) -> Stream:
        if self.indices is None or other.indices is None:
            return Stream(self.size, None, self.dense() + other.dense())
        indices = np.concatenate([self.indices, other.indices])
        order = np.argsort(indices, kind="stable")  # of two sorted runs: a merge
        indices = indices[order]
        is_first = np.ones(len(indices), bool)
        is_first[1:] = indices[1:] != indices[:-1]
        values = np.add.reduceat(np.concatenate([self.values, other.values])[order], np.flatnonzero(is_first))
        return Stream.of_pairs(self.size, indices[is_first], values)

    def slices(self, parts: int) -> list[Stream]:
        """The vector cut into so many parts, as `np.array_split` cuts; indices count from the beginning of each."""
        if self.indices is None:
            return [Stream(len(part), None, part) for part in split(self.values, parts)]
        sizes = [len(part) for part in split(np.broadcast_to(np.uint8(0), self.size), parts)]
        starts = np.cumsum([0, *sizes])
        ends = np.searchsorted(self.indices, starts)
        return [
            Stream.of_pairs(size, (self.indices[a:b] - start).astype(np.uint32), self.values[a:b])
            for size, start, a, b in zip(sizes, starts[:-1], ends, ends[1:], strict=False)
        ]


def is_dense_shorter(pairs: int, size: int, itemsize: int) -> bool:
    """Whether `size` values are at most as many bytes as `pairs` pairs of an index and a value."""
    return pairs * (INDEX + itemsize) >= size * itemsize


def recursive_doubling(comm: Messages, indices: Array, values: Array, size: int) -> Array:
    """Partners exchange all they have and add up: after round i, groups of 2^i ranks agree. For few pairs.

    lg p messages a rank; of k, 2 k, 4 k ... pairs if no choices overlap, of k pairs each if all are the same. If p
    is not a power of two, the ranks from the largest power below p on send their vectors to the first ranks beforehand
    and receive the result afterwards. SparCML's SSAR_Recursive_double.
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


def split_all_gather(comm: Messages, indices: Array, values: Array, size: int) -> Array:
    """Rank i adds up slice i of every rank's vector, in rank order, then all get all slices. For many pairs.

    2 (p - 1) messages a rank: the slices go straight to their ranks, the sums once round the ring. At most k pairs in
    the first half and, of a sum of K pairs, about (p - 1)/p K in the second; the slices that fill up are dense from
    there on. SparCML's SSAR_Split_allgather, and with dense slices DSAR_Split_allgather.
    """
    p, me = comm.size, comm.rank
    slices = Stream.of_pairs(size, indices, values).slices(p)
    sizes = [part.size for part in slices]
    shares = [slices[me]] * p
    for step in range(1, p):
        to, source = (me + step) % p, (me - step) % p
        shares[source] = Stream.from_bytes(comm.sendrecv(slices[to].to_bytes(), to, source), sizes[me], values.dtype)
    total = shares[0]
    for share in shares[1:]:
        total += share
    slices[me] = total
    right, left = (me + 1) % p, (me - 1) % p
    for step in range(p - 1):
        have, get = (me - step) % p, (me - step - 1) % p
        received = comm.sendrecv(slices[have].to_bytes(), right, left)
        slices[get] = Stream.from_bytes(received, sizes[get], values.dtype)
    return np.concatenate([part.dense() for part in slices])


ALL_REDUCE: dict[str, Callable[[Messages, Array, Array, int], Array]] = {
    "recursive_doubling": recursive_doubling,
    "split": split_all_gather,
}
