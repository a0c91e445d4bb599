"""The events of a rank as rows: a chain of blocks, whose rows are made when they are read.

Events that a recorder notes one by one are fields of one list. A tuple for each would take twice the memory, and the
garbage collector would visit it.

A simulation that plays a collective at once has the events of all its ranks as matrices, an entry per round and rank.
They stay matrices until the trace is read: rows take several times the memory, and a microsecond each to make.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from minidl.cluster.trace.recording import RECEIVE, REDUCE, SEND, WAIT, Place, Row

Integers = npt.NDArray[np.int64]
Times = npt.NDArray[np.float64]


class Rows(Collection[Row]):
    """A chain of blocks of rows."""

    def __init__(self, blocks: list[Collection[Row]]) -> None:
        self._blocks = [block for block in blocks if block]

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def __iter__(self) -> Iterator[Row]:
        return chain.from_iterable(self._blocks)

    def __contains__(self, row: object) -> bool:
        return any(row in block for block in self._blocks)


FIELDS = 8  # of a row


class RowsOfFields(Collection[Row]):
    """Rows whose fields follow each other in one list."""

    def __init__(self, fields: list[Any]) -> None:
        self._fields = fields

    def __len__(self) -> int:
        return len(self._fields) // FIELDS

    def __iter__(self) -> Iterator[Row]:
        return zip(*[iter(self._fields)] * FIELDS, strict=True)

    def __contains__(self, row: object) -> bool:
        return any(row == mine for mine in self)


SLOTS = SEND, WAIT, RECEIVE, WAIT, SEND, REDUCE  # the kinds of a rank's events in a round, in their order


class RoundsOfAll(NamedTuple):
    """What all ranks of a collective have done in successive rounds; a row per round, a column per rank.

    ends              when each slot of each round has ended, all slots below each other; row 0: when the event before
                      had. An event begins where the one before has ended; a slot without event ends there, too
    has_event         by round, slot and rank
    sources, targets  from which rank of the group a rank receives, and to which it sends
    got, sent         bytes
    posted            when the rank came to the round; then the same of its source, and of its target
    """

    ends: Times
    has_event: npt.NDArray[np.bool_]
    sources: Integers
    targets: Integers
    got: Integers
    sent: Integers
    posted: Times
    posted_by_source: Times
    posted_by_target: Times

    def of(self, rank: int, numbers: Integers) -> Iterator[tuple[Any, ...]]:
        """Yield the events of this rank: kind, start, end, nbytes, peer, posted, peer_posted."""
        sources, targets, *others = (column[:, rank] for column in self[2:])
        columns = numbers[sources], numbers[targets], *others
        limits = pairwise(self.ends[:, rank].tolist())
        for has_event, *row in zip(
            self.has_event[:, :, rank].tolist(), *(column.tolist() for column in columns), strict=True
        ):
            src, dst, got_here, sent_here, own, of_src, of_dst = row
            events = (
                (sent_here, dst, own, None),
                (0, src, own, of_src),
                (got_here, src, own, of_src),
                (0, dst, own, of_dst),
                (0, dst, own, of_dst),
                (got_here, -1, None, None),
            )
            for kind, is_there, event, (start, end) in zip(SLOTS, has_event, events, limits, strict=False):
                if is_there:
                    yield kind, start, end, *event


class RowsOfRounds(Collection[Row]):
    """The `count` rows of one rank, number `rank` of the group with the numbers `numbers` in the whole run."""

    def __init__(self, rounds: list[RoundsOfAll], rank: int, numbers: Integers, count: int, place: Place) -> None:
        self._rounds, self._rank, self._numbers, self._count, self._place = rounds, rank, numbers, count, place

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Row]:
        for block in self._rounds:
            for kind, start, end, nbytes, peer, posted, peer_posted in block.of(self._rank, self._numbers):
                yield kind, start, end, nbytes, peer, posted, peer_posted, self._place

    def __contains__(self, row: object) -> bool:
        return any(row == mine for mine in self)
