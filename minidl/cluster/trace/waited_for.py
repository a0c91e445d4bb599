"""For which rank the others waited: each wait is followed through ranks that waited themselves to one that did not."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

from minidl.cluster.trace.recording import Event

Piece = tuple[float, float, int]  # a part of a wait: start, end, and the rank that was waited for


def seconds_waited_for(events: Iterable[Event], ranks: int) -> list[float]:
    """By rank: the seconds that other ranks waited while it was the one that held them up, summed over these ranks.

    While rank 0 waits for rank 1, and rank 1 for rank 2, which computes, rank 2 holds both up. Ranks that wait in a
    circle for messages under way hold nobody up. A wait for the rank's own concurrent operations is one for whom these
    wait.

    Source: the idea is the blame shifting of Tallent, Mellor-Crummey and Porterfield, Analyzing lock contention in
    multithreaded applications (PPoPP 2010).
    """
    waits: dict[tuple[int, bool], list[Event]] = {}  # of each rank: in its program, and in concurrent operations
    for event in sorted((one for one in events if one.kind == "wait"), key=lambda one: one.start):
        waits.setdefault((event.rank, event.lane > 0), []).append(event)
    ends: dict[tuple[int, bool], list[float]] = {}
    for track, some in waits.items():
        ends[track] = list(accumulate((event.end for event in some), max))

    def during(start: float, end: float, rank: int, is_concurrent: bool) -> Iterator[Piece]:
        """What the rank waited for between start and end; two waits at the same time are the earlier one."""
        own = waits.get((rank, is_concurrent), [])
        for at in range(bisect_right(ends.get((rank, is_concurrent), []), start), len(own)):
            event = own[at]
            if event.start >= end:
                return
            begin, stop = max(start, event.start), min(end, event.end)
            if begin < stop and event.peer >= 0:
                yield begin, stop, event.peer
            elif begin < stop and not is_concurrent:
                yield from during(begin, stop, rank, True)
            start = max(start, stop)

    seconds = [0.0] * ranks
    to_follow = [(*piece, 1) for rank in range(ranks) for piece in during(0.0, float("inf"), rank, False)]
    while to_follow:
        start, end, rank, followed = to_follow.pop()
        if followed > ranks:  # in a circle
            continue
        for begin, stop, peer in during(start, end, rank, False):
            seconds[rank] += begin - start
            to_follow.append((begin, stop, peer, followed + 1))
            start = stop
        seconds[rank] += end - start
    return seconds
