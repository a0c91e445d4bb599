"""How a collective divides its work: vectors into chunks or segments, ranks into groups."""

from __future__ import annotations

import math
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy.typing as npt

from minidl.arguments import whole_number

Array = npt.NDArray[Any]
_T = TypeVar("_T", Array, range)


def split(x: _T, chunks: int) -> list[_T]:
    """As `np.array_split(x, chunks)`: views, or ranges of a range; if uneven, the first ones are longer by one."""
    short, longer = divmod(len(x), chunks)
    edges = accumulate([short + 1] * longer + [short] * (chunks - longer), initial=0)
    return [x[start:end] for start, end in pairwise(edges)]


def chunk_bytes(nbytes: int, chunks: int, itemsize: int) -> int:
    """The bytes of the largest of `chunks` chunks of a vector of nbytes, in whole elements of `itemsize` bytes."""
    return math.ceil(nbytes / (chunks * itemsize)) * itemsize


def chain_segments(p: int, elements: int, nbytes: int, segments: int | None = None) -> int:
    """The number of segments of the pipelined chain: as requested, but no more than there are elements.

    Default: the optimum sqrt((p - 2) n (beta + gamma/2) / alpha) for gamma = 0 and alpha / beta = 32 KiB, about right
    for Ethernet between 10 and 100 Gbit/s.
    """
    if segments is None:
        segments = max(1, round(math.sqrt(max(p - 2, 0) * nbytes / 32768)))
    else:
        segments = whole_number("pipelined_chain: segments", segments, at_least=1)
    return max(1, min(segments, elements))


def group_size(p: int, per_group: int | None = None) -> int:
    """Ranks per group of the hierarchical all-reduce: by default the divisor of p nearest to sqrt(p).

    ValueError if `per_group` does not divide p.
    """
    if per_group is None:
        return min((size for size in range(1, p + 1) if p % size == 0), key=lambda size: abs(size - math.sqrt(p)))
    if per_group < 1 or p % per_group:
        raise ValueError(f"hierarchical: per_group must divide the number of ranks, {p}; got {per_group}")
    return per_group
