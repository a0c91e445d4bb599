"""What an all-reduce of all ranks' vectors gives, with every sum in the order in which the messages would form it.

Each function takes the vectors by rank and a ufunc, and returns the result, which is the same on every rank. The order
matters for the last bits of a sum, and for max(0.0, -0.0). All reductions are in place, as in the messages: numpy
may round a complex product of one element differently in a new array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from minidl.cluster.collectives.partition import chain_segments, group_size, split
from minidl.cluster.collectives.point_to_point import Array

Vectors = Sequence[Array]


def with_the_bits_of_chunks(reduced: Callable[..., Array]) -> Callable[..., Array]:
    """Decide the argument `whole` of a function: whether it may reduce several chunks in one call of the ufunc.

    It may where the bits of an element cannot depend on its place in the call. They can in max(0.0, -0.0), in the
    rounding of complex products and in the sign of NaN + NaN: there numpy's vector instructions may differ from its
    loop for the last elements, so each chunk needs its own call, as in the messages.
    """

    @wraps(reduced)
    def reduced_as_in_messages(vectors: Vectors, op: np.ufunc, **options: Any) -> Array:
        kind = vectors[0].dtype.kind
        if kind in "biu" or op is np.add or (op is np.multiply and kind == "f"):
            total = reduced(vectors, op, True, **options)
            if kind in "biu" or not np.isnan(total).any():
                return total
        return reduced(vectors, op, False, **options)

    return reduced_as_in_messages


@with_the_bits_of_chunks
def ring(arrays: Vectors, op: np.ufunc, whole: bool) -> Array:
    """Chunk i of the first axis starts at rank i + 1 and goes up to the last rank, then from rank 0 to rank i.

    So each rank's array comes twice: first for the chunks below its number, later for the others. Both are one range.
    """
    p, total = len(arrays), np.empty_like(arrays[0])
    edges = _edges(total, p)

    def begin(chunk: int, array: Array) -> None:
        total[edges[chunk] : edges[chunk + 1]] = array[edges[chunk] : edges[chunk + 1]]

    for rank in range(1, p):
        begin(rank - 1, arrays[rank])
        _onto(total, arrays[rank], edges[:rank], op, whole)
    begin(p - 1, arrays[0])
    _onto(total, arrays[0], edges[:p], op, whole)
    for rank in range(1, p):
        _onto(total, arrays[rank], edges[rank:], op, whole)
    return total


def parameter_server(vectors: Vectors, op: np.ufunc) -> Array:
    """((x0 op x1) op x2) op ..."""
    total = vectors[0].copy()
    for vector in vectors[1:]:
        op(total, vector, out=total)
    return total


@with_the_bits_of_chunks
def ordered(vectors: Vectors, op: np.ufunc, whole: bool) -> Array:
    """((x0 op x1) op x2) op ..., each rank for its chunk."""
    total = vectors[0].copy()
    edges = _edges(total, len(vectors))
    for vector in vectors[1:]:
        _onto(total, vector, edges, op, whole)
    return total


def tree(vectors: Vectors, op: np.ufunc) -> Array:
    """In each round, the upper half of the ranks sends; a receiver puts its own vector last."""
    totals = list(vectors)
    while len(totals) > 1:
        have = 1 << (len(totals) - 1).bit_length() >> 1
        lower, upper = totals[:have], totals[have:]
        totals = [*_pairs(upper, lower, op), *lower[len(upper) :]]
    return totals[0]


def recursive_doubling(vectors: Vectors, op: np.ufunc) -> Array:
    """Neighbours first, the lower rank's vector before the higher one's."""
    totals = _folded(vectors, op)
    while len(totals) > 1:
        totals = _pairs(totals[0::2], totals[1::2], op)
    return totals[0]


def rabenseifner(vectors: Vectors, op: np.ufunc) -> Array:
    """Halves of the vector in the halves of the ranks; each rank puts its own values first."""

    def halved(totals: list[Array]) -> list[Array]:
        if len(totals) == 1:
            return totals
        half, middle = len(totals) // 2, (len(totals[0]) + 1) // 2
        lower, upper = totals[:half], totals[half:]
        low = _pairs([mine[:middle] for mine in lower], [other[:middle] for other in upper], op)
        high = _pairs([mine[middle:] for mine in upper], [other[middle:] for other in lower], op)
        return halved(low) + halved(high)

    return np.concatenate(halved(_folded(vectors, op)))


@with_the_bits_of_chunks
def pipelined_chain(vectors: Vectors, op: np.ufunc, whole: bool, segments: int | None = None) -> Array:
    """From the last rank down, each for one segment after the other; each puts its own values first."""
    total = vectors[-1]
    edges = _edges(total, chain_segments(len(vectors), len(total), total.nbytes, segments))
    for vector in vectors[-2::-1]:
        mine = vector.copy()
        _onto(mine, total, edges, op, whole)
        total = mine
    return total


def hierarchical(vectors: Vectors, op: np.ufunc, per_group: int | None = None) -> Array:
    """A ring in each group, then a ring of the groups for each chunk."""
    size = group_size(len(vectors), per_group)
    groups = [split(ring(vectors[start : start + size], op), size) for start in range(0, len(vectors), size)]
    return np.concatenate([ring(chunk, op) for chunk in zip(*groups, strict=True)])


def _edges(x: Array, chunks: int) -> list[int]:
    """Chunk i of x is x[edges[i] : edges[i + 1]]."""
    return [0, *accumulate(map(len, split(x, chunks)))]


def _onto(total: Array, array: Array, edges: Sequence[int], op: np.ufunc, whole: bool) -> None:
    """The chunks between these edges of `total` become `total op array`; if `whole`, all in one call."""
    for start, end in pairwise([edges[0], edges[-1]] if whole else edges):
        op(total[start:end], array[start:end], out=total[start:end])


def _pairs(first: Vectors, second: Vectors, op: np.ufunc) -> list[Array]:
    """`a op b` for the pairs of these vectors, up to the end of the shorter list."""
    totals = [a.copy() for a, _ in zip(first, second, strict=False)]
    for total, b in zip(totals, second, strict=False):
        op(total, b, out=total)
    return totals


def _folded(vectors: Vectors, op: np.ufunc) -> list[Array]:
    """The vectors of the first ranks, the largest power of two, after those beyond have been reduced into them."""
    first = 1 << len(vectors).bit_length() - 1
    beyond = len(vectors) - first
    return [*_pairs(vectors[:beyond], vectors[first:], op), *vectors[beyond:first]]
