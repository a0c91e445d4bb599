"""Events as the bars of a timeline: a bar has two halves while a rank sends and receives at the same time."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import inf
from operator import attrgetter
from typing import NamedTuple

from minidl.cluster.trace.recording import HOST, Event
from minidl.plots.bars import Bar
from minidl.plots.style import bytes_text

HALF = {"send": "upper", "receive": "lower"}
OTHER = {"send": "receive", "receive": "send"}

NO_AXIS = "no axis"  # messages of communicators that are not from a mesh

Message = tuple[int, int, float, int]  # sender, receiver, time of posting, number among those posted at that time


class InTransit(NamedTuple):
    """The interval in which a message is transferred, labelled from the view of its sender or receiver."""

    start: float
    end: float
    label: str
    message: Message


def bars(events: Sequence[Event], start: float = 0.0, end: float = inf) -> Iterator[Bar]:
    """Yield a bar for each event, in halves while another message is transferred in the other direction.

    start, end   only events that overlap this interval, in seconds

    A send or receive that took no time has no bar. A rank records one activity at a time: during an exchange first the
    receive, then the send if it is still unfinished. A message is in transit from the moment both sides were ready
    until its receiver has it, which the receive records. Only bars of sends and receives are halved, not those of a
    rank that waits or computes meanwhile.
    """
    messages = _messages(events)
    posts = {
        message: event
        for event, message in zip(events, messages, strict=True)
        if message is not None and event.kind == "send" and event.peer_posted is None
    }
    shown = [pair for pair in zip(events, messages, strict=True) if pair[0].end >= start and pair[0].start <= end]
    under_way = _transfers(shown, posts)
    for event, message in shown:
        if message is None:
            yield Bar(event.rank, event.kind, event.start, event.end, event.label, event.lane)
        elif event.start < event.end:
            label = _label(event.kind, event.peer, posts.get(message, event).nbytes)
            own = Bar(event.rank, event.kind, event.start, event.end, label, event.lane, "", message)
            yield from _cut(own, under_way[event.rank, event.lane, OTHER[event.kind]])


def bars_by_axis(events: Sequence[Event], start: float = 0.0, end: float = inf) -> Iterator[Bar]:
    """Yield a bar for each event; the kind of communication is its axis of the mesh, and its label is the operation."""
    for event in events:
        if event.end < start or event.start > end:
            continue
        kind, label = event.kind, event.label
        if kind in ("send", "receive", "reduce"):
            kind, label = event.axis or NO_AXIS, event.operation
        yield Bar(event.rank, kind, event.start, event.end, label, event.lane)


def _cut(own: Bar, transfers: Sequence[InTransit]) -> Iterator[Bar]:
    """Yield the bar of a send or receive, halved while a message in the other direction is in transit."""
    rank, kind, time, end, label, lane, _, message = own
    for index in range(bisect_right(transfers, time, key=attrgetter("end")), len(transfers)):
        other = transfers[index]
        first, last = max(other.start, time), min(other.end, end)
        if first >= last:
            break
        if time < first:
            yield Bar(rank, kind, time, first, label, lane, "", message)
        yield Bar(rank, kind, first, last, label, lane, HALF[kind], message)
        yield Bar(rank, OTHER[kind], first, last, other.label, lane, HALF[OTHER[kind]], other.message)
        time = last
    if time < end:
        yield Bar(rank, kind, time, end, label, lane, "", message)


def _transfers(
    events: Sequence[tuple[Event, Message | None]], posts: dict[Message, Event]
) -> dict[tuple[int, int, str], list[InTransit]]:
    """The messages in transit on each track in each direction, in order of time, without overlap."""
    found: dict[tuple[int, int, str], list[InTransit]] = defaultdict(list)
    for receive, message in sorted(events, key=lambda pair: pair[0].end):
        if message is None or receive.kind != "receive" or receive.posted is None or receive.peer_posted is None:
            continue
        sides = [(receive.rank, receive.lane, "receive", receive.peer)]
        if message in posts:
            sides.append((receive.peer, posts[message].lane, "send", receive.rank))
        for rank, lane, kind, peer in sides:
            track = found[rank, lane, kind]
            start = max(receive.posted, receive.peer_posted, track[-1].end if track else 0.0)  # one after the other
            if start < receive.end:
                track.append(InTransit(start, receive.end, _label(kind, peer, receive.nbytes), message))
    return found


def _messages(events: Sequence[Event]) -> list[Message | None]:
    """The message of each event, if any; a distinct one if the time of posting is unknown."""
    seen: Counter[tuple[int, int, float, str]] = Counter()
    found: list[Message | None] = []
    for event in events:
        if event.kind == "send":
            posted = event.start if event.posted is None else event.posted
            key = event.rank, event.peer, posted, "posted" if event.peer_posted is None else "delivered"
        elif event.kind == "receive":
            posted = event.start if event.peer_posted is None else event.peer_posted
            key = event.peer, event.rank, posted, "received"
        else:
            found.append(None)
            continue
        found.append((*key[:3], seen[key]))
        seen[key] += 1
    return found


@lru_cache
def _label(kind: str, peer: int, nbytes: int) -> str:
    whom = "host" if peer == HOST else "all" if peer < 0 else peer  # all: by shared memory, which every rank reads
    where = f"to {whom}" if kind == "send" else f"from {whom}"
    return f"{where}\n{bytes_text(nbytes)}" if nbytes else where
