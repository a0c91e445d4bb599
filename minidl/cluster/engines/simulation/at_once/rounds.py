"""The collectives as rounds of messages between all their ranks at once.

In a round, each rank sends at most one message and receives at most one. If it does both, that is one `sendrecv`. A
rank goes through its rounds in their order, and waits for nothing but its own messages. Sources: as in the functions
of `minidl.cluster.collectives` with the same names, whose messages these are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from minidl.cluster.collectives.partition import chain_segments, group_size

Integers = npt.NDArray[np.int64]


class Messages(NamedTuple):
    """Rank src[i] sends nbytes[i] bytes to rank dst[i], for all i at the same time."""

    src: Integers
    dst: Integers
    nbytes: Integers


class Reductions(NamedTuple):
    """Rank ranks[i] reduces two arrays of nbytes[i] bytes each."""

    ranks: Integers
    nbytes: Integers


Rounds = Iterator[Messages | Reductions]


def divided(elements: int | Integers, chunks: int) -> Integers:
    """The elements of each chunk, as `partition.split` divides a vector; one row for each of several vectors."""
    short, longer = np.divmod(np.asarray(elements, np.int64), chunks)
    return short[..., None] + (np.arange(chunks) < longer[..., None])


def reduce_scatter_ring(ranks: Integers, chunks: Integers) -> Rounds:
    """Rings of equal size, one in each row of `ranks`; row r of `chunks` has the bytes of its chunks."""
    p = ranks.shape[-1]
    place, right = np.arange(p), np.roll(ranks, -1, axis=-1)
    for step in range(2, p + 1):
        yield Messages(ranks.ravel(), right.ravel(), chunks[..., (place - step + 1) % p].ravel())
        yield Reductions(ranks.ravel(), chunks[..., (place - step) % p].ravel())


def all_gather_ring(ranks: Integers, items: Integers) -> Rounds:
    """Rings of equal size, one in each row of `ranks`; row r of `items` has the bytes of each rank's item."""
    p = ranks.shape[-1]
    place, right = np.arange(p), np.roll(ranks, -1, axis=-1)
    for step in range(p - 1):
        yield Messages(ranks.ravel(), right.ravel(), items[..., (place - step) % p].ravel())


def all_to_all_pairwise(items: Integers) -> Rounds:
    """Row r of `items` has the bytes of what rank r sends to each rank."""
    ranks = np.arange(len(items))
    for step in range(1, len(ranks)):
        to = (ranks + step) % len(ranks)
        yield Messages(ranks, to, items[ranks, to])


def barrier_dissemination(p: int) -> Rounds:
    ranks, nothing = np.arange(p), np.zeros(p, np.int64)
    for distance in _powers(p):
        yield Messages(ranks, (ranks + distance) % p, nothing)


# All-reduce of a vector on p ranks


def ring(p: int, elements: int, itemsize: int) -> Rounds:
    ranks, chunks = np.arange(p), divided(elements, p) * itemsize
    yield from reduce_scatter_ring(ranks, chunks)
    yield from all_gather_ring(ranks, chunks)


def tree(p: int, elements: int, itemsize: int) -> Rounds:
    def children(have: int) -> Integers:
        return np.arange(have, min(2 * have, p))

    for have in reversed(_powers(p)):
        yield from _into(children(have), children(have) - have, elements * itemsize)
    for have in _powers(p):
        yield _equal(children(have) - have, children(have), elements * itemsize)


def recursive_doubling(p: int, elements: int, itemsize: int) -> Rounds:
    first = np.arange(_first(p))

    def among_first() -> Rounds:
        for distance in _powers(len(first)):
            yield from _into(first, first ^ distance, elements * itemsize)

    yield from _folded(p, elements * itemsize, among_first())


def rabenseifner(p: int, elements: int, itemsize: int) -> Rounds:
    first = np.arange(_first(p))

    def among_first() -> Rounds:
        kept = [np.full(len(first), elements)]
        for distance in reversed(_powers(len(first))):
            whole = kept[-1]
            kept.append(np.where(first & distance == 0, (whole + 1) // 2, whole // 2))
            yield Messages(first, first ^ distance, (whole - kept[-1]) * itemsize)
            yield Reductions(first, kept[-1] * itemsize)
        for distance in _powers(len(first)):
            yield Messages(first, first ^ distance, kept.pop() * itemsize)

    yield from _folded(p, elements * itemsize, among_first())


def parameter_server(p: int, elements: int, itemsize: int) -> Rounds:
    server = np.zeros(1, np.int64)
    for worker in range(1, p):
        yield from _into(server + worker, server, elements * itemsize)
    for worker in range(1, p):
        yield _equal(server, server + worker, elements * itemsize)


def pipelined_chain(p: int, elements: int, itemsize: int, segments: int | None = None) -> Rounds:
    sizes = divided(elements, chain_segments(p, elements, elements * itemsize, segments)) * itemsize
    for number in range(p - 2 + len(sizes)):  # segment k reaches rank i in round k + (p - 2 - i)
        k = np.arange(max(0, number - (p - 2)), min(len(sizes), number + 1))
        to = p - 2 + k - number
        yield Messages(to + 1, to, sizes[k])
        yield Reductions(to, sizes[k])
    for number in range(p - 2 + len(sizes)):
        k = np.arange(max(0, number - (p - 2)), min(len(sizes), number + 1))
        yield Messages(number - k, number - k + 1, sizes[k])


def hierarchical(p: int, elements: int, itemsize: int, per_group: int | None = None) -> Rounds:
    size = group_size(p, per_group)
    groups, chunks = np.arange(p).reshape(-1, size), divided(elements, size)
    pieces = divided(chunks, len(groups)) * itemsize  # row c: chunk c divided among the groups
    of_groups = np.broadcast_to(chunks * itemsize, groups.shape)
    yield from reduce_scatter_ring(groups, of_groups)
    yield from reduce_scatter_ring(groups.T, pieces)
    yield from all_gather_ring(groups.T, pieces)
    yield from all_gather_ring(groups, of_groups)


def ordered(p: int, elements: int, itemsize: int) -> Rounds:
    ranks, chunks = np.arange(p), divided(elements, p) * itemsize
    yield from all_to_all_pairwise(np.broadcast_to(chunks, (p, p)))
    for _ in range(p - 1):
        yield Reductions(ranks, chunks)
    yield from all_gather_ring(ranks, chunks)


def _folded(p: int, nbytes: int, among_first: Rounds) -> Rounds:
    """The ranks beyond the largest power of two send their vectors before these rounds, and get the result after."""
    beyond = np.arange(_first(p), p)
    yield from _into(beyond, beyond - _first(p), nbytes)
    yield from among_first
    yield _equal(beyond - _first(p), beyond, nbytes)


def _into(src: Integers, dst: Integers, nbytes: int) -> Rounds:
    """Messages of one size, which the receivers reduce."""
    yield _equal(src, dst, nbytes)
    yield Reductions(dst, np.full(len(dst), nbytes))


def _equal(src: Integers, dst: Integers, nbytes: int) -> Messages:
    return Messages(src, dst, np.full(len(src), nbytes))


def _first(p: int) -> int:
    """The largest power of two up to p."""
    return 1 << p.bit_length() - 1


def _powers(below: int) -> list[int]:
    """The powers of two below `below`: 1, 2, 4, ..."""
    return [1 << k for k in range((below - 1).bit_length())]
