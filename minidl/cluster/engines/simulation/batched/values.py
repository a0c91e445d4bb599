"""The result of an all-reduce, with every sum in the order in which the messages would form it.

The order matters for the last bits of a sum, and for max(0.0, -0.0). All reductions are in place, as in the messages:
numpy may round a complex product of one element differently in a new array. `executed` does the reductions of
`cluster/collectives/rounds.py` one by one. On many ranks that is too slow where the vector has many chunks: the
algorithms in `FASTER` do the reductions of a chunk in the same order, but of many chunks in one call of the ufunc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from minidl.cluster.collectives import rounds
from minidl.cluster.collectives.partition import group_size, split
from minidl.cluster.collectives.point_to_point import Array
from minidl.cluster.collectives.rounds import Reduces

Vectors = Sequence[Array]


def all_reduced(algorithm: str, vectors: Vectors, op: np.ufunc, **options: Any) -> Array:
    """The result on every rank for the vectors by rank, which do not change; chunks are along the first axis.

    Several chunks are reduced in one call only where the bits of an element cannot depend on its place in the call.
    They can in max(0.0, -0.0), in the rounding of complex products and in the sign of NaN + NaN: there numpy's vector
    instructions may differ from its loop for the last elements.
    """
    kind = vectors[0].dtype.kind
    if algorithm in FASTER and (kind in "biu" or op is np.add or (op is np.multiply and kind == "f")):
        total = FASTER[algorithm](vectors, op, **options)
        if kind in "biu" or not np.isnan(total).any():
            return total
    return executed(rounds.all_reduce(algorithm, len(vectors), *_size(vectors), **options), vectors, op)


def executed(description: rounds.AllReduce, vectors: Vectors, op: np.ufunc) -> Array:
    """The result of the reductions, one by one. If two ranks form the same sum, only the lower one computes it."""
    totals, copied, merged, last = list(vectors), set[int](), set[int](), dict[int, int]()
    chunks = [slice(*bounds) for bounds in description.bounds.tolist()]

    def own(rank: int) -> Array:
        if rank not in copied:
            totals[rank] = totals[rank].copy()
            copied.add(rank)
        return totals[rank]

    for one in description.rounds:
        if not one.reduces.is_reduction:
            continue
        rows = list(zip(*(column.tolist() for column in (*one.operands, one.dst, one.chunk)), strict=True))
        if one.reduces is Reduces.LOWER_FIRST:
            rows = [row for row in rows if row[0] == row[2] not in merged]
            merged.update(b for _, b, _, _ in rows)
        of_others = vectors if one.reduces is Reduces.KEPT else totals
        for a, b, dst, number in rows:
            chunk = chunks[number]
            total = (totals[a] if a in copied else own(a))[chunk]
            if b == 1 and of_others is vectors:
                total[...] = vectors[0][chunk]
            op(total, of_others[b][chunk], out=total)
            if len(chunks) == 1:
                totals[b], totals[dst] = vectors[b], totals[a]  # what b had is not needed again, and is freed
                copied.add(dst)
            elif a != dst:
                own(dst)[chunk] = total
        last.update((number, dst) for _, _, dst, number in rows)
    result = vectors[0].copy()
    for number, rank in last.items():
        result[chunks[number]] = totals[rank][chunks[number]]
    return result


def _size(vectors: Vectors) -> tuple[int, int]:
    return len(vectors[0]), vectors[0].itemsize


# The same, faster


def ring(vectors: Vectors, op: np.ufunc) -> Array:
    """Chunk i starts at rank i + 1 and goes up to the last rank, then from rank 0 to rank i.

    So each rank's vector comes twice: first for the chunks below its number, later for the others.
    """
    p, total = len(vectors), np.empty_like(vectors[0])
    edges = [0, *accumulate(map(len, split(total, p)))]

    def reduce(vector: Array, part: slice) -> None:
        op(total[part], vector[part], out=total[part])

    for rank, (start, end) in enumerate(pairwise(edges), 1):  # after the last rank comes rank 0
        total[start:end] = vectors[rank % p][start:end]
        reduce(vectors[rank % p], slice(start))
    for rank in range(1, p):
        reduce(vectors[rank], slice(edges[rank], None))
    return total


def rabenseifner(vectors: Vectors, op: np.ufunc) -> Array:
    """Depth first: a vector is halved again while it is in the cache."""
    first = 1 << len(vectors).bit_length() - 1
    beyond = len(vectors) - first

    def reduced(a: Array, b: Array) -> Array:
        total = a.copy()
        op(total, b, out=total)
        return total

    def halved(totals: list[Array]) -> list[Array]:
        if len(totals) == 1:
            return totals
        middle, pairs = (len(totals[0]) + 1) // 2, list(zip(totals, totals[len(totals) // 2 :], strict=False))
        low = [reduced(lower[:middle], upper[:middle]) for lower, upper in pairs]
        high = [reduced(upper[middle:], lower[middle:]) for lower, upper in pairs]
        return halved(low) + halved(high)

    folded = map(reduced, vectors[:beyond], vectors[first:])
    return np.concatenate(halved([*folded, *vectors[beyond:first]]))


def ordered(vectors: Vectors, op: np.ufunc) -> Array:
    """Reduce every chunk in the server's order."""
    return executed(rounds.all_reduce("parameter_server", len(vectors), *_size(vectors)), vectors, op)


def pipelined_chain(vectors: Vectors, op: np.ufunc, segments: int | None = None) -> Array:
    """Reduce the vector as if it were one segment."""
    return executed(rounds.all_reduce("pipelined_chain", len(vectors), *_size(vectors), segments=1), vectors, op)


def hierarchical(vectors: Vectors, op: np.ufunc, per_group: int | None = None) -> Array:
    """A ring in each group, then a ring of the groups for each chunk."""
    size = group_size(len(vectors), per_group)
    groups = [split(ring(vectors[start : start + size], op), size) for start in range(0, len(vectors), size)]
    return np.concatenate([ring(chunk, op) for chunk in zip(*groups, strict=True)])


FASTER: dict[str, Callable[..., Array]] = {
    "ring": ring,
    "rabenseifner": rabenseifner,
    "ordered": ordered,
    "pipelined_chain": pipelined_chain,
    "hierarchical": hierarchical,
}
