"""A trace as Chrome trace-event JSON, which Perfetto and chrome://tracing open.

Source of the format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event
Format): complete events "X", which nest within their thread, flow events "s" and "f", instants "i", metadata "M".
"""

from __future__ import annotations

import gzip
import json
import os
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from minidl.cluster.trace.recording import Event

TraceEvent = dict[str, Any]  # one object of the JSON file
Events = Callable[[], Iterator[Event]]  # ordered by rank, lane and time; iterated twice

CHUNK = 200  # trace events that are written at once


def write(path: str | os.PathLike[str], events: Events, ranks: int, source: str, note: str) -> None:
    """Write the file, compressed by gzip if its name ends with ".gz"; memory holds the events of one rank at a time."""
    is_compressed = os.fspath(path).endswith(".gz")
    with gzip.open(path, "wt", 6, "utf-8") if is_compressed else open(path, "w", encoding="utf-8") as file:
        encode = json.JSONEncoder(separators=(",", ":")).encode
        file.write('{"traceEvents":[')
        remaining, separator = entries(events, ranks, source), ""
        while chunk := list(islice(remaining, CHUNK)):
            file.write(separator + encode(chunk)[1:-1])
            separator = ","
        rest = encode({"displayTimeUnit": "ms", "otherData": {"source": source, "note": note}})
        file.write("]," + rest.removeprefix("{"))


def entries(events: Events, ranks: int, source: str) -> Iterator[TraceEvent]:
    """Yield a thread for each lane of each rank, and for each call a slice that contains those of its messages."""
    lanes = sorted({(rank, 0) for rank in range(ranks)} | {(event.rank, event.lane) for event in events()})
    threads = {track: track[1] * ranks + track[0] for track in lanes}
    yield _metadata("process_name", 0, {"name": f"minidl ({source})"})
    for index, (rank, lane) in enumerate(lanes):
        name = f"rank {rank}, concurrent ({lane})" if lane else f"rank {rank}"
        yield _metadata("thread_name", threads[rank, lane], {"name": name})
        yield _metadata("thread_sort_index", threads[rank, lane], {"sort_index": index})
    numbered = zip(events(), arrows(events()), strict=True)
    for track, members in groupby(numbered, key=lambda pair: (pair[0].rank, pair[0].lane)):
        yield from _thread(members, threads[track])


def _thread(events: Iterable[tuple[Event, int]], thread: int) -> Iterator[TraceEvent]:
    """Yield the slices of one thread in order of time, each call before its contents; events come with their arrows."""
    for (call, operation), group in groupby(events, key=lambda pair: (pair[0].call, pair[0].operation)):
        members = sorted(group, key=lambda pair: pair[0].start)  # a fault is recorded before its event
        if operation:
            first = members[0][0]
            details = {"label": first.label, "axis": first.axis, "call": call}
            yield _slice(operation, "call", thread, first.start, max(event.end for event, _ in members), details)
        for event, arrow in members:
            yield from _entries(event, thread, arrow)


def _entries(event: Event, thread: int, arrow: int) -> Iterator[TraceEvent]:
    if event.kind == "fault":
        place = {"ph": "i", "s": "t", "pid": 0, "tid": thread, "ts": _nanoseconds(event.start) / 1000}
        yield {**place, "name": event.label, "cat": "fault", "args": {"operation": event.operation}}
        return
    if event.kind == "compute" and event.start == event.end:
        return  # no time between two calls
    name = event.kind if event.operation or not event.label else event.label
    details = {"bytes": event.nbytes, "peer": event.peer, "label": event.label, "operation": event.operation}
    yield _slice(name, event.kind, thread, event.start, event.end, details)
    if arrow >= 0:
        place = {"pid": 0, "tid": thread, "ts": _nanoseconds(event.start) / 1000, "id": arrow}
        phase = {"ph": "s"} if event.kind == "send" else {"ph": "f", "bp": "e"}
        yield {**phase, **place, "name": "message", "cat": "message"}


def arrows(events: Iterable[Event]) -> Iterator[int]:
    """Yield for each event the number of its message if the trace has both of its ends, else -1.

    The two ends have the same sender, receiver and time of posting; if several messages agree in all three, the k-th
    sent is the k-th received. The numbers are in arrays, because a trace may hold a million events.
    """
    ends, moments, count = array("i"), array("d"), 0  # of each end: event, sender, receiver, 1 if received
    for count, event in enumerate(events, 1):
        if event.kind == "send" and event.posted is not None and event.peer_posted is None:
            ends.extend((count - 1, event.rank, event.peer, 0))
            moments.extend((event.posted, event.start))
        elif event.kind == "receive" and event.peer_posted is not None:
            ends.extend((count - 1, event.peer, event.rank, 1))
            moments.extend((event.peer_posted, event.start))
    index, sender, receiver, side = np.asarray(ends).reshape(-1, 4).T
    posted, start = np.asarray(moments).reshape(-1, 2).T
    numbers = np.full(count, -1, np.int32)
    order = np.lexsort((index, side, posted, receiver, sender))
    message = _runs(sender[order], receiver[order], posted[order])
    half = _runs(message, side[order])
    turn = np.arange(len(order)) - np.searchsorted(half, half)  # the k-th of its half
    again = np.lexsort((side[order], turn, message))
    message, turn, order = message[again], turn[again], order[again]
    is_pair = (message[1:] == message[:-1]) & (turn[1:] == turn[:-1]) & (start[order[:-1]] <= start[order[1:]])
    for member in (order[:-1][is_pair], order[1:][is_pair]):
        numbers[index[member]] = np.arange(len(member))
    return map(int, numbers)


def _runs(*columns: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Number the runs of equal rows."""
    changes = [column[1:] != column[:-1] for column in columns]
    return np.cumsum(np.concatenate([[False], np.logical_or.reduce(changes)])[: len(columns[0])])


def _slice(name: str, category: str, thread: int, start: float, end: float, details: TraceEvent) -> TraceEvent:
    """A complete event. Whole nanoseconds keep the order of any two times, so rounding keeps the nesting."""
    begin = _nanoseconds(start)
    place = {"ph": "X", "pid": 0, "tid": thread, "ts": begin / 1000, "dur": (_nanoseconds(end) - begin) / 1000}
    return {**place, "name": name, "cat": category, "args": details}


def _metadata(name: str, thread: int, details: TraceEvent) -> TraceEvent:
    return {"ph": "M", "pid": 0, "tid": thread, "name": name, "args": details}


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
