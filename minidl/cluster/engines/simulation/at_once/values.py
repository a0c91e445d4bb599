"""What an all-reduce of all ranks' vectors gives, with every sum in the order in which the messages would form it.

Each function takes the vectors by rank and a ufunc, and returns the result, which is the same on every rank. The order
matters for the last bits of a sum, and for max(0.0, -0.0).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from minidl.cluster.collectives.partition import group_size, split
from minidl.cluster.collectives.point_to_point import Array

Vectors = Sequence[Array]


def ring(vectors: Vectors, op: np.ufunc) -> Array:
    """Chunk i starts at rank i + 1 and ends at rank i."""
    return np.concatenate(ring_chunks(vectors, op))


def ring_chunks(arrays: Vectors, op: np.ufunc) -> list[Array]:
    """Chunk i of the result, as rank i has it after the reduce-scatter."""
    p = len(arrays)
    chunks = [split(array, p) for array in arrays]
    return [in_order([chunks[(i + 1 + step) % p][i] for step in range(p)], op) for i in range(p)]


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
    groups = [ring_chunks(vectors[start : start + size], op) for start in range(0, len(vectors), size)]
    return np.concatenate([ring(chunk, op) for chunk in zip(*groups, strict=True)])


def _folded(vectors: Vectors, op: np.ufunc) -> list[Any]:
    """The vectors of the first ranks, the largest power of two, after those beyond have been reduced into them."""
    first = 1 << len(vectors).bit_length() - 1
    beyond = len(vectors) - first
    return [*map(op, vectors[:beyond], vectors[first:]), *vectors[beyond:first]]
