"""Events as the bars of a picture: two halves of a bar where a rank sends and receives at once."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import inf
from operator import attrgetter
from typing import NamedTuple

from minidl.cluster.trace.event import Event
from minidl.plots.bars import Bar
from minidl.plots.style import bytes_text

HALF = {"send": "upper", "receive": "lower"}
OTHER = {"send": "receive", "receive": "send"}

Message = tuple[int, int, float, int]  # sender, receiver, when it was posted, its number among those posted then


class Transfer(NamedTuple):
    """A message while it is on its way, as its sender or its receiver sees it."""

    start: float
    end: float
    label: str
    message: Message


def bars(events: Sequence[Event], start: float = 0.0, end: float = inf) -> Iterator[Bar]:
    """A bar for each event, in halves while a message is on its way in the other direction.

    start, end: only of events that overlap this time (seconds). A send or a receive that took no time has no bar.

    A rank records one activity at a time: of an exchange the receive, and after it the send, if that is not over by
    then. A message is on its way from when both sides were ready for it until its receiver has it; that is known from
    the receive. Only the bars of sends and receives are halved: a rank that waits or computes meanwhile does that.
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


def _cut(own: Bar, transfers: Sequence[Transfer]) -> Iterator[Bar]:
    """The bar of a send or a receive, halved from where a transfer in the other direction begins to where it ends."""
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
) -> dict[tuple[int, int, str], list[Transfer]]:
    """What is on its way on each track in each direction, in order of time, one after the other."""
    found: dict[tuple[int, int, str], list[Transfer]] = defaultdict(list)
    for receive, message in sorted(events, key=lambda pair: pair[0].end):
        if message is None or receive.kind != "receive" or receive.posted is None or receive.peer_posted is None:
            continue
        sides = [(receive.rank, receive.lane, "receive", receive.peer)]
        if message in posts:
            sides.append((receive.peer, posts[message].lane, "send", receive.rank))
        for rank, lane, kind, peer in sides:
            track = found[rank, lane, kind]
            start = max(
                receive.posted, receive.peer_posted, track[-1].end if track else 0.0
            )  # of several, each in turn
            if start < receive.end:
                track.append(Transfer(start, receive.end, _label(kind, peer, receive.nbytes), message))
    return found


def _messages(events: Sequence[Event]) -> list[Message | None]:
    """Which message an event belongs to, if any; one of its own if it is unknown when the message was posted."""
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
    whom = "all" if peer < 0 else peer  # laid out in shared memory, where all take it
    where = f"to {whom}" if kind == "send" else f"from {whom}"
    return f"{where}\n{bytes_text(nbytes)}" if nbytes else where
