"""What an all-reduce of all ranks' vectors gives, with every sum in the order in which the messages would form it.

Each function takes the vectors by rank and a ufunc, and returns the result, which is the same on every rank. The order
matters for the last bits of a sum, and for max(0.0, -0.0). All reductions are in place, as in the messages: numpy
may round a complex product of one element differently in a new array.

The order is that of `cluster/collectives/rounds.py`, whose reductions `executed` does. Where a vector has many chunks,
one call of the ufunc for each would take too long: there the rounds of one chunk say how all are reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from minidl.cluster.collectives import rounds
from minidl.cluster.collectives.partition import chain_segments, group_size, split
from minidl.cluster.collectives.point_to_point import Array

Vectors = Sequence[Array]


class Reductions(NamedTuple):
    """The reductions `a op b` that a result needs, in order.

    steps   the ranks that have a and b and that will have the result, and the number of the chunk
    ends    the ranks that have a chunk of the result at last, and its number
    chunks  the chunks of the vector
    """

    steps: list[tuple[int, int, int, int]]
    ends: list[tuple[int, int]]
    chunks: list[slice]


@lru_cache(4)
def needed(algorithm: str, p: int, elements: int = 1, itemsize: int = 1, **options: int) -> Reductions:
    """The reductions of an algorithm, without those that are repeated: where all ranks form one sum, rank 0's stay."""
    bounds, all_rounds = rounds.ALL_REDUCE[algorithm](p, elements, itemsize, **options)
    chunks = [slice(start, end) for start, end in bounds.tolist()] if len(bounds) > 1 else [slice(None)]
    reducing = [one for one in all_rounds if one.reduces.is_reduction]
    if not reducing:
        return Reductions([], [(0, 0)], [slice(None)])
    numbers, first = np.unique(reducing[-1].chunk, return_index=True)
    ends = reducing[-1].dst[first]
    steps: list[tuple[int, int, int, int]] = []
    is_needed = np.isin(np.arange(p), ends)
    for one in reversed(reducing):
        columns = [column[is_needed[one.dst]].tolist() for column in (*one.operands, one.dst, one.chunk)]
        steps += zip(*columns, strict=True)
        is_needed[columns[0] + columns[1]] = True
    return Reductions(steps[::-1], list(zip(ends.tolist(), numbers.tolist(), strict=True)), chunks)


def executed(reductions: Reductions, vectors: Vectors, op: np.ufunc) -> Array:
    """The result of these reductions; the vectors do not change."""
    totals, copied = list(vectors), set[int]()
    for a, b, dst, number in reductions.steps:
        total, chunk = totals[a] if a in copied else totals[a].copy(), reductions.chunks[number]
        op(total[chunk], totals[b][chunk], out=total[chunk])
        totals[dst] = total
        if len(reductions.chunks) == 1:
            totals[b] = total  # so that what it had, which nobody needs again, is freed
        copied.add(dst)
    return np.concatenate([totals[rank][reductions.chunks[number]] for rank, number in reductions.ends])


def by_rounds(algorithm: str, vectors: Vectors, op: np.ufunc) -> Array:
    """Reduction by reduction, for algorithms that have few."""
    return executed(needed(algorithm, len(vectors), len(vectors[0]), vectors[0].itemsize), vectors, op)


def ring(vectors: Vectors, op: np.ufunc) -> Array:
    """Chunk i of the first axis starts at rank i + 1 and goes up to the last rank, then from rank 0 to rank i."""
    in_order = needed("parameter_server", len(vectors))

    def of_chunk(i: int, chunks: list[Array]) -> Array:
        return executed(in_order, [*chunks[i + 1 :], *chunks[: i + 1]], op)

    return _with_the_bits_of_chunks(vectors, op, len(vectors), _ring_of_ranges, of_chunk)


def _ring_of_ranges(vectors: Vectors, op: np.ufunc) -> Array:
    """The same in 2p calls: each rank's vector comes first for the chunks below its number, later for the others."""
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
    """((x0 op x1) op x2) op ..., each rank for its chunk: the order of a parameter server."""
    value = partial(executed, needed("parameter_server", len(vectors)))
    return _with_the_bits_of_chunks(vectors, op, len(vectors), value, lambda _, chunks: value(chunks, op))


def pipelined_chain(vectors: Vectors, op: np.ufunc, segments: int | None = None) -> Array:
    """Each segment as if it were the only one."""
    value = partial(executed, needed("pipelined_chain", len(vectors), segments=1))
    count = chain_segments(len(vectors), len(vectors[0]), vectors[0].nbytes, segments)
    return _with_the_bits_of_chunks(vectors, op, count, value, lambda _, chunks: value(chunks, op))


def hierarchical(vectors: Vectors, op: np.ufunc, per_group: int | None = None) -> Array:
    """A ring in each group, then a ring of the groups for each chunk."""
    size = group_size(len(vectors), per_group)
    groups = [split(ring(vectors[start : start + size], op), size) for start in range(0, len(vectors), size)]
    return np.concatenate([ring(chunk, op) for chunk in zip(*groups, strict=True)])


ALL_REDUCE: dict[str, Callable[..., Array]] = {
    **{name: partial(by_rounds, name) for name in rounds.ALL_REDUCE},
    "ring": ring,
    "ordered": ordered,
    "pipelined_chain": pipelined_chain,
    "hierarchical": hierarchical,
}


def _with_the_bits_of_chunks(
    vectors: Vectors,
    op: np.ufunc,
    count: int,
    value: Callable[[Vectors, np.ufunc], Array],
    of_chunk: Callable[[int, list[Array]], Array],
) -> Array:
    """The value of whole vectors, or of each of `count` chunks where the bits of an element depend on its place.

    They can in max(0.0, -0.0), in the rounding of complex products and in the sign of NaN + NaN: there numpy's vector
    instructions may differ from its loop for the last elements, so each chunk needs its own call, as in the messages.
    """
    kind = vectors[0].dtype.kind
    if kind in "biu" or op is np.add or (op is np.multiply and kind == "f"):
        total = value(vectors, op)
        if kind in "biu" or not np.isnan(total).any():
            return total
    edges = [0, *accumulate(map(len, split(vectors[0], count)))]
    chunks = ([vector[start:end] for vector in vectors] for start, end in pairwise(edges))
    return np.concatenate([of_chunk(i, each) for i, each in enumerate(chunks)])
