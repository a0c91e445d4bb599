"""The rounds of a collective as matrices: a row per round, a column per rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, wraps
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from minidl.cluster.collectives.rounds import Integers, Reduces, Round

ENTRIES = 1 << 14  # of a matrix: those of a block stay in the cache
FEW = 64  # ranks whose blocks are kept: a ring of 64 takes 200 KB

_Made = TypeVar("_Made")


class Block(NamedTuple):
    """Successive rounds of p ranks.

    sources   the rank from which each rank receives; its own number: none
    targets   the rank to which it sends; its own number: none
    chunks    number of the chunk that it receives or reduces
    reduces   whether it reduces that chunk
    """

    sources: Integers
    targets: Integers
    chunks: Integers
    reduces: npt.NDArray[np.bool_]


class Timed(NamedTuple):
    """Rounds with the bytes of their chunks: `sizes[chunk]`, or `sizes[src, chunk]` if ranks have different ones."""

    blocks: Iterable[Block]
    sizes: Integers


def kept_for_few(make: Callable[..., _Made]) -> Callable[..., _Made]:
    """Keep what `make(p, ...)` returns for few ranks, because training makes the same calls in every step."""
    kept = lru_cache(64, typed=True)(make)

    @wraps(make)
    def kept_or_made(p: int, *arguments: object, **options: object) -> _Made:
        return (kept if p <= FEW else make)(p, *arguments, **options)  # type: ignore[arg-type]

    return kept_or_made


def blocks(p: int, rounds: Iterable[Round]) -> Iterable[Block]:
    """The rounds in blocks; those of many ranks are made one by one, because all would fill the memory."""
    made = _blocks(p, iter(rounds))
    return list(made) if p <= FEW else made


def _blocks(p: int, rounds: Iterator[Round]) -> Iterator[Block]:
    while some := list(islice(rounds, max(1, ENTRIES // p))):
        sources, targets = (np.tile(np.arange(p), (len(some), 1)) for _ in range(2))
        block = Block(sources, targets, np.zeros_like(sources), np.zeros(sources.shape, bool))
        for row, (src, dst, chunk, reduces) in enumerate(some):
            if reduces is not Reduces.KEPT:
                sources[row, dst], targets[row, src] = src, dst
            block.chunks[row, dst] = chunk
            block.reduces[row, dst] = reduces.is_reduction
        yield block
