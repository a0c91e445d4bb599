"""The messages of a collective as sizes: of each rank, or of one rank where all do the same."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from minidl.cluster.collectives import rounds
from minidl.cluster.cost.formulas import fastest_all_reduce
from minidl.cluster.cost.network import Network

RING = {"all_gather": rounds.all_gather_ring, "reduce_scatter": rounds.reduce_scatter_ring}


class Collective(NamedTuple):
    """A call of a collective along an axis of the mesh.

    axis       "tp" or "dp"
    kind       "all_reduce", "all_gather" or "reduce_scatter"
    elements   numbers of the vector: on every rank before a reduction, after a gather
    itemsize   bytes of a number
    algorithm  of an all-reduce, by name
    rows       into how many equal rows a reduce-scatter may cut the vector
    """

    axis: str
    kind: str
    elements: int
    itemsize: int
    algorithm: str = "auto"
    rows: int = 0

    @property
    def unit(self) -> int:
        """Bytes of what is never divided: a number or a row."""
        return self.itemsize * (self.elements // self.rows if self.rows else 1)


class Turn(NamedTuple):
    """What a rank does in a round: sends to one rank while it receives from another, then reduces; None: neither.

    to, source  numbers in the group
    sent        bytes
    reduced     bytes
    """

    to: int | None
    sent: int
    source: int | None
    reduced: int


@lru_cache(maxsize=4096)
def turns(call: Collective, network: Network | None, ranks: tuple[int, ...]) -> list[list[Turn]]:
    """What each of these ranks of the network does in the collective, round by round."""
    p = len(ranks)
    found: list[list[Turn]] = [[] for _ in ranks]
    for one, nbytes in _rounds(call, network, ranks):
        to: list[tuple[int, int] | None] = [None] * p
        source: list[int | None] = [None] * p
        reduced = [0] * p
        for src, dst, size in zip(one.src.tolist(), one.dst.tolist(), nbytes, strict=True):
            if one.reduces is not rounds.Reduces.KEPT:
                to[src], source[dst] = (dst, size), src
            reduced[dst] = size if one.reduces.is_reduction else 0
        for rank in range(p):
            going = to[rank]
            if going is not None:
                found[rank].append(Turn(*going, source[rank], reduced[rank]))
            elif source[rank] is not None or reduced[rank]:
                found[rank].append(Turn(None, 0, source[rank], reduced[rank]))
    return found


def are_alike(turns_of: Sequence[Sequence[Turn]], within: int = 0) -> bool:
    """Whether all ranks send, receive and reduce the same at the same time, up to `within` bytes in a round."""
    if len({len(mine) for mine in turns_of}) > 1:
        return False
    for of_round in zip(*turns_of, strict=True):
        if len({(turn.to is None, turn.source is None) for turn in of_round}) > 1:
            return False
        for sizes in ([turn.sent for turn in of_round], [turn.reduced for turn in of_round]):
            if max(sizes) - min(sizes) > within:
                return False
    return True


def _rounds(call: Collective, network: Network | None, ranks: tuple[int, ...]) -> list[tuple[rounds.Round, list[int]]]:
    """The rounds of the collective, and the bytes of each message."""
    p, elements, itemsize = len(ranks), call.elements, call.itemsize
    if call.kind == "all_reduce":
        name, options = call.algorithm, dict[str, int]()
        if name == "auto":
            name, options = fastest_all_reduce(network, ranks, elements * itemsize, itemsize)
        made = rounds.all_reduce(name, p, elements, itemsize, **options)
        sizes, each = made.sizes * itemsize, made.rounds
    else:
        rows = call.rows or p
        sizes = rounds.divided(rows, p) @ np.array([-1, 1]) * (elements // rows * itemsize)
        each = RING[call.kind](np.arange(p), np.arange(p))
    return [(one, sizes[one.chunk].tolist()) for one in each]
