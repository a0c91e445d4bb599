"""What an all-reduce of all ranks' vectors gives, with every sum in the order in which the messages would form it.

The order matters for the last bits of a sum, and for max(0.0, -0.0). All reductions are in place, as in the messages:
numpy may round a complex product of one element differently in a new array. `executed` does the reductions of
`cluster/collectives/rounds.py` one by one. On many ranks that is too slow where the vector has many chunks, so the
algorithms in `IN_FEW_CALLS` reduce many chunks in one call of the ufunc, each in the same order.
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
    if algorithm in IN_FEW_CALLS and (kind in "biu" or op is np.add or (op is np.multiply and kind == "f")):
        total = IN_FEW_CALLS[algorithm](vectors, op, **options)
        if kind in "biu" or not np.isnan(total).any():
            return total
    return executed(rounds.all_reduce(algorithm, len(vectors), *_size(vectors), **options), vectors, op)


def executed(description: rounds.AllReduce, vectors: Vectors, op: np.ufunc) -> Array:
    """The result of the reductions, one by one. Of two ranks that form the same sum, only the lower one does."""
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
        for a, b, dst, number in zip(*(column.tolist() for column in (*one.operands, one.dst, one.chunk)), strict=True):
            chunk, theirs = chunks[number], totals[b]
            if one.reduces is Reduces.LOWER_FIRST:
                if a != dst or a in merged:
                    continue
                merged.add(b)
            elif one.reduces is Reduces.KEPT:
                theirs = vectors[b]
                if b == 1:
                    own(a)[chunk] = vectors[0][chunk]
            total = own(a)
            op(total[chunk], theirs[chunk], out=total[chunk])
            last[number] = dst
            if len(chunks) == 1:  # what b had is not needed again, and is freed
                totals[b] = totals[dst] = total
                copied.add(dst)
            elif a != dst:
                own(dst)[chunk] = total[chunk]
    result = vectors[0].copy()
    for number, rank in last.items():
        result[chunks[number]] = totals[rank][chunks[number]]
    return result


def _size(vectors: Vectors) -> tuple[int, int]:
    return len(vectors[0]), vectors[0].itemsize


# The same in few calls


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


def ordered(vectors: Vectors, op: np.ufunc) -> Array:
    """The server's order in every chunk."""
    return executed(rounds.all_reduce("parameter_server", len(vectors), *_size(vectors)), vectors, op)


def pipelined_chain(vectors: Vectors, op: np.ufunc, segments: int | None = None) -> Array:
    """As if all segments were one."""
    return executed(rounds.all_reduce("pipelined_chain", len(vectors), *_size(vectors), segments=1), vectors, op)


def hierarchical(vectors: Vectors, op: np.ufunc, per_group: int | None = None) -> Array:
    """A ring in each group, then a ring of the groups for each chunk."""
    size = group_size(len(vectors), per_group)
    groups = [split(ring(vectors[start : start + size], op), size) for start in range(0, len(vectors), size)]
    return np.concatenate([ring(chunk, op) for chunk in zip(*groups, strict=True)])


IN_FEW_CALLS: dict[str, Callable[..., Array]] = {
    "ring": ring,
    "ordered": ordered,
    "pipelined_chain": pipelined_chain,
    "hierarchical": hierarchical,
}
