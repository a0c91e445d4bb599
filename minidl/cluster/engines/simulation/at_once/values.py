"""What an all-reduce of all ranks' vectors gives, with every sum in the order in which the messages would form it.

Each function takes the vectors by rank and a ufunc, and returns the result, which is the same on every rank. The order
matters for the last bits of a sum, and for max(0.0, -0.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from minidl.cluster.collectives.partition import group_size, split
from minidl.cluster.collectives.point_to_point import Array

Vectors = Sequence[Array]


def ring(arrays: Vectors, op: np.ufunc) -> Array:
    """Chunk i of the first axis starts at rank i + 1 and goes up to the last rank, then from rank 0 to rank i.

    So each rank's array comes twice: first for the chunks below its number, later for the others. Both are one range.
    """
    p, total = len(arrays), np.empty_like(arrays[0])
    edges = [0, *accumulate(map(len, split(total, p)))]

    def begin(chunk: int, array: Array) -> None:
        total[edges[chunk] : edges[chunk + 1]] = array[edges[chunk] : edges[chunk + 1]]

    for rank in range(1, p):
        begin(rank - 1, arrays[rank])
        _onto(total, arrays[rank], edges[:rank], op)
    begin(p - 1, arrays[0])
    _onto(total, arrays[0], edges[:p], op)
    for rank in range(1, p):
        _onto(total, arrays[rank], edges[rank:], op)
    return total


def in_order(vectors: Vectors, op: np.ufunc) -> Array:
    """((x0 op x1) op x2) op ..., in a new array."""
    total = vectors[0].copy()
    for vector in vectors[1:]:
        op(total, vector, out=total)
    return total


def tree(vectors: Vectors, op: np.ufunc) -> Array:
    """In each round, the upper half of the ranks sends; a receiver puts its own vector last."""
    totals = list(vectors)
    while len(totals) > 1:
        have = 1 << (len(totals) - 1).bit_length() >> 1
        lower, upper = totals[:have], totals[have:]
        totals = [*map(op, upper, lower), *lower[len(upper) :]]
    return totals[0]


def recursive_doubling(vectors: Vectors, op: np.ufunc) -> Array:
    """Neighbours first, the lower rank's vector before the higher one's."""
    totals = _folded(vectors, op)
    while len(totals) > 1:
        totals = [*map(op, totals[0::2], totals[1::2])]
    return totals[0]


def rabenseifner(vectors: Vectors, op: np.ufunc) -> Array:
    """Halves of the vector in the halves of the ranks; each rank puts its own values first."""

    def halved(totals: list[Array]) -> list[Array]:
        if len(totals) == 1:
            return totals
        half, middle = len(totals) // 2, (len(totals[0]) + 1) // 2
        lower, upper = totals[:half], totals[half:]
        low = [op(mine[:middle], other[:middle]) for mine, other in zip(lower, upper, strict=True)]
        high = [op(mine[middle:], other[middle:]) for mine, other in zip(upper, lower, strict=True)]
        return halved(low) + halved(high)

    return np.concatenate(halved(_folded(vectors, op)))


def pipelined_chain(vectors: Vectors, op: np.ufunc, segments: int | None = None) -> Array:
    """From the last rank down; each puts its own values first."""
    return reduce(lambda total, vector: op(vector, total), vectors[::-1])


def hierarchical(vectors: Vectors, op: np.ufunc, per_group: int | None = None) -> Array:
    """A ring in each group, then a ring of the groups for each chunk."""
    size = group_size(len(vectors), per_group)
    groups = [split(ring(vectors[start : start + size], op), size) for start in range(0, len(vectors), size)]
    return np.concatenate([ring(chunk, op) for chunk in zip(*groups, strict=True)])


def _onto(total: Array, array: Array, edges: Sequence[int], op: np.ufunc) -> None:
    """The chunks between these edges of `total` become `total op array`.

    One call does them all where the bits of an element cannot depend on its place. In max(0.0, -0.0) and the rounding
    of complex products, numpy's vector instructions may differ from its loop for the last elements, so there each chunk
    has its own call, as in the messages.
    """
    if total.dtype.kind in "biu" or (total.dtype.kind == "f" and op in (np.add, np.multiply)):
        edges = [edges[0], edges[-1]]
    for start, end in pairwise(edges):
        op(total[start:end], array[start:end], out=total[start:end])


def _folded(vectors: Vectors, op: np.ufunc) -> list[Any]:
    """The vectors of the first ranks, the largest power of two, after those beyond have been reduced into them."""
    first = 1 << len(vectors).bit_length() - 1
    beyond = len(vectors) - first
    return [*map(op, vectors[:beyond], vectors[first:]), *vectors[beyond:first]]
