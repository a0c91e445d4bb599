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

Mask = npt.NDArray[np.bool_]
_Made = TypeVar("_Made")


class Block(NamedTuple):
    """Successive rounds of p ranks.

    sources     the rank from which each rank receives; its own number: none
    targets     the rank to which it sends; its own number: none
    receives, sends, reduces   whether it does
    takes_part  whether it sends or receives
    got         bytes that it receives or reduces
    sent        bytes that it sends
    traffic     by rank, of all rounds: messages and bytes sent, messages and bytes received
    """

    sources: Integers
    targets: Integers
    receives: Mask
    sends: Mask
    reduces: Mask
    takes_part: Mask
    got: Integers
    sent: Integers
    traffic: Integers


def kept_for_few(make: Callable[..., _Made]) -> Callable[..., _Made]:
    """Keep what `make(p, ...)` returns for few ranks, because training makes the same calls in every step."""
    kept = lru_cache(64, typed=True)(make)

    @wraps(make)
    def kept_or_made(p: int, *arguments: object, **options: object) -> _Made:
        return (kept if p <= FEW else make)(p, *arguments, **options)

    return kept_or_made


def blocks(p: int, rounds: Iterable[Round], sizes: Integers) -> Iterable[Block]:
    """The rounds in blocks. With many ranks a block is made when it is needed: all at once would fill the memory.

    sizes: bytes of the chunks, sizes[chunk], or sizes[src, chunk] if ranks have different ones
    """
    made = _blocks(p, iter(rounds), sizes)
    return list(made) if p <= FEW else made


def _blocks(p: int, rounds: Iterator[Round], sizes: Integers) -> Iterator[Block]:
    everyone = np.arange(p)
    while some := list(islice(rounds, max(1, ENTRIES // p))):
        sources, targets = (np.tile(everyone, (len(some), 1)) for _ in range(2))
        reduces, got = np.zeros(sources.shape, bool), np.zeros_like(sources)
        for row, (src, dst, chunk, what) in enumerate(some):
            if what is not Reduces.KEPT:
                sources[row, dst], targets[row, src] = src, dst
            got[row, dst] = sizes[chunk] if sizes.ndim == 1 else sizes[src, chunk]
            reduces[row, dst] = what.is_reduction
        receives, sends = sources != everyone, targets != everyone
        sent = np.where(sends, np.take_along_axis(got, targets, axis=1), 0)
        traffic = np.array([sends.sum(0), sent.sum(0), receives.sum(0), (got * receives).sum(0)])
        yield Block(sources, targets, receives, sends, reduces, receives | sends, got, sent, traffic)
