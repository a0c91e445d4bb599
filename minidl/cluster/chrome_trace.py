"""A trace as Chrome trace-event JSON, which Perfetto and chrome://tracing open.

Source of the format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event
Format): complete events "X", which nest within their thread, flow events "s" and "f", instants "i", metadata "M".
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from minidl.cluster.event import Event

Entry = dict[str, Any]


def document(events: Sequence[Event], ranks: int, source: str, note: str) -> Entry:
    """The whole file: a thread for every rank and every lane beside it, a slice for each call around its messages.

    events: rank by rank, lane by lane, in order of time.
    """
    entries: list[Entry] = [_metadata("process_name", 0, {"name": f"minidl ({source})"})]
    lanes = sorted({(rank, 0) for rank in range(ranks)} | {(event.rank, event.lane) for event in events})
    threads = {track: track[1] * ranks + track[0] for track in lanes}
    for index, (rank, lane) in enumerate(lanes):
        name = f"rank {rank}, beside the program ({lane})" if lane else f"rank {rank}"
        entries.append(_metadata("thread_name", threads[rank, lane], {"name": name}))
        entries.append(_metadata("thread_sort_index", threads[rank, lane], {"sort_index": index}))
    arrows = _arrows(events)
    for (rank, lane), track in groupby(events, key=lambda event: (event.rank, event.lane)):
        entries += _thread(list(track), threads[rank, lane], arrows)
    return {"traceEvents": entries, "displayTimeUnit": "ms", "otherData": {"source": source, "note": note}}


def _thread(events: list[Event], thread: int, arrows: dict[int, int]) -> Iterator[Entry]:
    """The slices of one thread in order of time, each call before what it holds."""
    for (call, operation), group in groupby(events, key=lambda event: (event.call, event.operation)):
        members = sorted(group, key=lambda event: event.start)  # a fault is written down before what it happens in
        if operation:
            details = {"label": members[0].label, "call": call}
            yield _slice(operation, "call", thread, members[0].start, max(event.end for event in members), details)
        for event in members:
            yield from _entries(event, thread, arrows.get(id(event)))


def _entries(event: Event, thread: int, arrow: int | None) -> Iterator[Entry]:
    if event.kind == "fault":
        place = {"ph": "i", "s": "t", "pid": 0, "tid": thread, "ts": _nanoseconds(event.start) / 1000}
        yield {**place, "name": event.label, "cat": "fault", "args": {"operation": event.operation}}
        return
    if event.kind == "compute" and event.start == event.end:
        return  # between two calls that follow each other at once
    name = event.kind if event.operation or not event.label else event.label
    details = {"bytes": event.nbytes, "peer": event.peer, "label": event.label, "operation": event.operation}
    yield _slice(name, event.kind, thread, event.start, event.end, details)
    if arrow is not None:
        place = {"pid": 0, "tid": thread, "ts": _nanoseconds(event.start) / 1000, "id": arrow}
        phase = {"ph": "s"} if event.kind == "send" else {"ph": "f", "bp": "e"}
        yield {**phase, **place, "name": "message", "cat": "message"}


def _arrows(events: Sequence[Event]) -> dict[int, int]:
    """A number for each message that has both of its ends here, under the identities of its two events."""
    sends: dict[tuple[int, int, float], deque[Event]] = defaultdict(deque)
    for event in events:
        if event.kind == "send" and event.posted is not None and event.peer_posted is None:
            sends[event.rank, event.peer, event.posted].append(event)
    numbers: dict[int, int] = {}
    for receive in events:
        if receive.kind == "receive" and receive.peer_posted is not None:
            waiting = sends.get((receive.peer, receive.rank, receive.peer_posted))
            if waiting and waiting[0].start <= receive.start:
                numbers[id(receive)] = numbers[id(waiting.popleft())] = len(numbers) // 2
    return numbers


def _slice(name: str, category: str, thread: int, start: float, end: float, details: Entry) -> Entry:
    """A complete event. Whole nanoseconds keep the order of any two moments, so that rounding breaks no nesting."""
    begin = _nanoseconds(start)
    place = {"ph": "X", "pid": 0, "tid": thread, "ts": begin / 1000, "dur": (_nanoseconds(end) - begin) / 1000}
    return {**place, "name": name, "cat": category, "args": details}


def _metadata(name: str, thread: int, details: Entry) -> Entry:
    return {"ph": "M", "pid": 0, "tid": thread, "name": name, "args": details}


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
