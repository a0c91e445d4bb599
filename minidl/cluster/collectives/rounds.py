"""The collectives as data: rounds of messages, each between all ranks at once.

The functions of this folder say what one rank does. Code that needs all ranks reads these generators instead: the
clocks and values of a simulation, the load of links, pictures. A round has four entries; for every i at the same time,

    rank src[i] sends its chunk number chunk[i] to rank dst[i], and `reduces` says what becomes of it there

A rank sends at most one message in a round and receives at most one; if it does both, that is one `sendrecv`. It goes
through its rounds in order and waits for nothing but its own messages. A ring of p ranks, for example:

    r = np.arange(p)
    for step in range(2, p + 1):
        yield Round((r - 1) % p, r, (r - step) % p, Reduces.RECEIVED_FIRST)    # reduce-scatter
    for step in range(1, p):
        yield Round((r - 1) % p, r, (r - step) % p, Reduces.NOT)               # all-gather

Sources: as in the functions with the same names, whose messages these are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from minidl.cluster.collectives.partition import chain_segments, group_size

Integers = npt.NDArray[np.int64]


class Reduces(Enum):
    """What a receiver does with a chunk. In `a op b` the order matters: max(0.0, -0.0) is not max(-0.0, 0.0)."""

    NOT = "the chunk replaces its own"
    OWN_FIRST = "its own becomes `own op received`"
    RECEIVED_FIRST = "its own becomes `received op own`"
    LOWER_FIRST = "its own becomes `a op b`, a that of the lower rank"
    LATER = "it keeps the chunk, which a later round reduces"
    KEPT = "no message: what it has kept from rank 0 becomes `that op what it has kept from src`"

    @property
    def is_reduction(self) -> bool:
        """Whether the receiver reduces in this round."""
        return self not in (Reduces.NOT, Reduces.LATER)


class Round(NamedTuple):
    """Messages at the same time: src[i] sends chunk[i] to dst[i]."""

    src: Integers
    dst: Integers
    chunk: Integers
    reduces: Reduces

    @property
    def operands(self) -> tuple[Integers, Integers]:
        """The ranks that have a and b of the reduction `a op b`."""
        if self.reduces is Reduces.LOWER_FIRST:
            return np.minimum(self.src, self.dst), np.maximum(self.src, self.dst)
        return (self.src, self.dst) if self.reduces is Reduces.RECEIVED_FIRST else (self.dst, self.src)


Rounds = Iterator[Round]


class AllReduce(NamedTuple):
    """An all-reduce of a vector: chunk c has the elements bounds[c, 0] to bounds[c, 1] - 1."""

    bounds: Integers
    rounds: Rounds

    @property
    def sizes(self) -> Integers:
        """The elements of each chunk."""
        return self.bounds[:, 1] - self.bounds[:, 0]


def all_reduce(
    algorithm: str,
    p: int,
    elements: int,
    itemsize: int,
    segments: int | None = None,
    per_group: int | None = None,
) -> AllReduce:
    """The all-reduce by that algorithm of a vector of `elements` elements, each of `itemsize` bytes, on p ranks."""
    if algorithm == "pipelined_chain":
        count = chain_segments(p, elements, elements * itemsize, segments)
        return AllReduce(divided(elements, count), pipelined_chain(p, count))
    if algorithm == "hierarchical":
        size = group_size(p, per_group)
        return AllReduce(divided_again(divided(elements, size), p // size), hierarchical(p, size))
    if algorithm == "rabenseifner":
        return AllReduce(halved(elements, _first(p)), rabenseifner(p))
    return AllReduce(divided(elements, p if algorithm in ("ring", "ordered") else 1), ALL_REDUCE[algorithm](p))


def divided(elements: int, chunks: int, start: int = 0) -> Integers:
    """The bounds of each chunk, as `partition.split` divides a vector of that number of elements."""
    edges = start + np.arange(chunks + 1) * (elements // chunks) + np.minimum(np.arange(chunks + 1), elements % chunks)
    return np.stack([edges[:-1], edges[1:]], axis=1)


def divided_again(chunks: Integers, shares: int) -> Integers:
    """These chunks; then the shares of chunk 0, those of chunk 1, ..."""
    return np.concatenate([chunks, *(divided(end - start, shares, start) for start, end in chunks.tolist())])


def halved(elements: int, leaves: int) -> Integers:
    """Chunk 1 is the vector, and chunks 2c and 2c + 1 are the halves of chunk c; there is no chunk 0."""
    level = np.array([[0, elements]])
    levels = [np.zeros_like(level), level]
    while len(level) < leaves:
        middle = (level.sum(axis=1) + 1) // 2
        level = np.stack([level[:, 0], middle, middle, level[:, 1]], axis=1).reshape(-1, 2)
        levels.append(level)
    return np.concatenate(levels)


# Rounds


def reduce_scatter_ring(ranks: Integers, chunks: Integers) -> Rounds:
    """Rings of equal size: row r of `ranks` is a ring, row r of `chunks` has the chunks of its vector."""
    p = ranks.shape[-1]
    place, src, dst = np.arange(p), np.roll(ranks, 1, axis=-1).ravel(), ranks.ravel()
    for step in range(2, p + 1):
        yield Round(src, dst, chunks[..., (place - step) % p].ravel(), Reduces.RECEIVED_FIRST)


def all_gather_ring(ranks: Integers, chunks: Integers) -> Rounds:
    """Rings of equal size, as in `reduce_scatter_ring`; at first, each rank has one of the ring's chunks."""
    p = ranks.shape[-1]
    place, src, dst = np.arange(p), np.roll(ranks, 1, axis=-1).ravel(), ranks.ravel()
    for step in range(1, p):
        yield Round(src, dst, chunks[..., (place - step) % p].ravel(), Reduces.NOT)


def all_to_all_pairwise(p: int) -> Rounds:
    """Chunk c of each rank is for rank c."""
    ranks = np.arange(p)
    for step in range(1, p):
        yield Round((ranks - step) % p, ranks, ranks, Reduces.LATER)


def barrier_dissemination(p: int) -> Rounds:
    ranks, nothing = np.arange(p), np.zeros(p, np.int64)
    for distance in _powers(p):
        yield Round((ranks - distance) % p, ranks, nothing, Reduces.NOT)


def reduce_tree(p: int) -> Rounds:
    """Reduce chunk 0 to rank 0."""
    for have in reversed(_powers(p)):
        children = np.arange(have, min(2 * have, p))
        yield Round(children, children - have, np.zeros_like(children), Reduces.RECEIVED_FIRST)


def broadcast_tree(p: int) -> Rounds:
    """Broadcast chunk 0 from rank 0."""
    for have in _powers(p):
        children = np.arange(have, min(2 * have, p))
        yield Round(children - have, children, np.zeros_like(children), Reduces.NOT)


# All-reduce of a vector on p ranks


def ring(p: int) -> Rounds:
    yield from reduce_scatter_ring(np.arange(p), np.arange(p))
    yield from all_gather_ring(np.arange(p), np.arange(p))


def tree(p: int) -> Rounds:
    yield from reduce_tree(p)
    yield from broadcast_tree(p)


def recursive_doubling(p: int) -> Rounds:
    first = np.arange(_first(p))
    exchanges = (
        Round(first ^ distance, first, np.zeros_like(first), Reduces.LOWER_FIRST) for distance in _powers(len(first))
    )
    yield from _folded(p, 0, exchanges)


def rabenseifner(p: int) -> Rounds:
    """Of the p' first ranks, rank r keeps chunk (p' + r) // distance: one half of what it had before; see `halved`."""
    first = np.arange(_first(p))

    def among_first() -> Rounds:
        for distance in reversed(_powers(len(first))):
            yield Round(first ^ distance, first, (len(first) + first) // distance, Reduces.OWN_FIRST)
        for distance in _powers(len(first)):
            yield Round(first ^ distance, first, (len(first) + (first ^ distance)) // distance, Reduces.NOT)

    yield from _folded(p, 1, among_first())


def parameter_server(p: int) -> Rounds:
    server = chunk = np.zeros(1, np.int64)
    for worker in range(1, p):
        yield Round(server + worker, server, chunk, Reduces.OWN_FIRST)
    for worker in range(1, p):
        yield Round(server, server + worker, chunk, Reduces.NOT)


def pipelined_chain(p: int, segments: int) -> Rounds:
    """Segment k reaches rank i in round k + (p - 2 - i), and on its way back rank i + 1 in round k + i."""
    rounds = range(p - 2 + segments if p > 1 else 0)
    for number in rounds:
        k = np.arange(max(0, number - (p - 2)), min(segments, number + 1))
        to = p - 2 + k - number
        yield Round(to + 1, to, k, Reduces.OWN_FIRST)
    for number in rounds:
        k = np.arange(max(0, number - (p - 2)), min(segments, number + 1))
        yield Round(number - k, number - k + 1, k, Reduces.NOT)


def hierarchical(p: int, per_group: int) -> Rounds:
    """The chunks of a group's ring come first; then their shares for the rings of the groups; see `divided_again`."""
    groups, chunks = np.arange(p).reshape(-1, per_group), np.arange(per_group)
    of_groups, shares = np.broadcast_to(chunks, groups.shape), per_group + np.arange(p).reshape(per_group, -1)
    yield from reduce_scatter_ring(groups, of_groups)
    yield from reduce_scatter_ring(groups.T, shares)
    yield from all_gather_ring(groups.T, shares)
    yield from all_gather_ring(groups, of_groups)


def ordered(p: int) -> Rounds:
    ranks = np.arange(p)
    yield from all_to_all_pairwise(p)
    for other in range(1, p):
        yield Round(np.full(p, other), ranks, ranks, Reduces.KEPT)
    yield from all_gather_ring(ranks, ranks)


ALL_REDUCE: dict[str, Callable[..., Rounds]] = {
    "ring": ring,
    "tree": tree,
    "recursive_doubling": recursive_doubling,
    "rabenseifner": rabenseifner,
    "parameter_server": parameter_server,
    "pipelined_chain": pipelined_chain,
    "hierarchical": hierarchical,
    "ordered": ordered,
}


def _folded(p: int, whole: int, among_first: Rounds) -> Rounds:
    """The ranks beyond the largest power of two send chunk `whole` before these rounds, and receive it after them."""
    beyond = np.arange(_first(p), p)
    chunk = np.full_like(beyond, whole)
    if len(beyond):
        yield Round(beyond, beyond - _first(p), chunk, Reduces.OWN_FIRST)
    yield from among_first
    if len(beyond):
        yield Round(beyond - _first(p), beyond, chunk, Reduces.NOT)


def _first(p: int) -> int:
    """The largest power of two up to p."""
    return 1 << p.bit_length() - 1


def _powers(below: int) -> list[int]:
    """The powers of two below `below`: 1, 2, 4, ..."""
    return [1 << k for k in range((below - 1).bit_length())]
