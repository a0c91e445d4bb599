"""The events of a rank as rows: a chain of blocks, each a list, or rows that are made from columns while they are read.

A simulation that plays a collective at once has the events of all its ranks as numpy columns, one entry an event. They
stay columns until the trace is read, because a row takes about four times the memory, and a microsecond to make.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from minidl.cluster.trace.recording import Row

Integers = npt.NDArray[np.int64]
Times = npt.NDArray[np.float64]


class Place(NamedTuple):
    """The fields of `Event` that all events of a communicator call share."""

    label: str
    operation: str
    call: int
    lane: int
    axis: str


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


class Columns:
    """The events of all ranks of a collective, ordered by time for each rank.

    `add` appends one event for each of the given ranks; NaN in `posted` or `peer_posted` stands for None.
    """

    def __init__(self) -> None:
        self._added: list[tuple[npt.NDArray[Any], ...]] = []
        self._by_rank: tuple[npt.NDArray[Any], ...] = ()  # the columns after the first, sorted by the first, the rank
        self._first: Integers = np.zeros(1, np.int64)  # where the events of each rank begin in these

    def add(
        self,
        kind: int,
        ranks: Integers,
        peers: Integers,
        starts: Times,
        ends: Times,
        nbytes: Integers,
        posted: Times,
        peer_posted: Times,
    ) -> None:
        """Keep the arrays as they are: they must not change later."""
        kinds = np.full(len(ranks), kind, np.int8)
        self._added.append((ranks, kinds, starts, ends, nbytes, peers, posted, peer_posted))

    def of(self, rank: int) -> Iterator[tuple[Any, ...]]:
        """Yield the events of this rank: kind, start, end, nbytes, peer, posted, peer_posted."""
        if self._added:
            ranks, *columns = (np.concatenate(column) for column in zip(*self._added, strict=True))
            self._added = []
            order = np.argsort(ranks, kind="stable")
            self._first = np.searchsorted(ranks[order], np.arange(ranks.max() + 2))
            self._by_rank = tuple(column[order] for column in columns)
        here = slice(*self._first[rank : rank + 2].tolist())
        return zip(*(column[here].tolist() for column in self._by_rank), strict=True)


class RowsOfColumns(Collection[Row]):
    """The rows of one rank, number `rank` in the columns, which has `count` events there."""

    def __init__(self, columns: Columns, rank: int, count: int, place: Place) -> None:
        self._columns, self._rank, self._count, self._place = columns, rank, count, place

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Row]:
        label, operation, call, lane, axis = self._place
        for kind, start, end, nbytes, peer, posted, peer_posted in self._columns.of(self._rank):
            times = None if posted != posted else posted, None if peer_posted != peer_posted else peer_posted
            yield (kind, start, end, nbytes, peer, label, operation, call, lane, *times, axis)

    def __contains__(self, row: object) -> bool:
        return any(row == mine for mine in self)
