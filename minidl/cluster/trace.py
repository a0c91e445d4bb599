"""The trace of a run: who computed, sent, received and waited, when, and how many bytes moved."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from minidl.cluster.recorder import KINDS, Recording, Shares, Traffic

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Event(NamedTuple):
    """Something that a rank did from `start` to `end` (seconds since the program began on all ranks).

    kind: "compute", "send", "receive", "reduce" (the arithmetic of a reduction) or "wait" (until the other side was
    there). label: the last `comm.mark`. operation: the communicator call it was part of ("" for compute), and `call`
    the number of that call. peer: the other rank, or -1.
    """

    rank: int
    kind: str
    start: float
    end: float
    nbytes: int
    peer: int
    label: str
    operation: str
    call: int
    lane: int = 0
    posted: float | None = None
    peer_posted: float | None = None


class Trace:
    """What all ranks recorded.

    `source` says how the times came about: "measured" or "simulated". Each rank keeps a bounded number of events, the
    first ones; the ledger and the shares always cover the whole run, and `dropped` counts the events that are missing.
    """

    def __init__(self, recordings: list[Recording | None], source: str) -> None:
        self.source = source
        self.size = len(recordings)
        self._recordings = recordings

    def __repr__(self) -> str:
        kept = sum(len(recording.rows) for recording in self._recordings if recording)
        return f"<Trace: {self.size} ranks, {kept} events, {self.source}{', ' + self.note if self.note else ''}>"

    @property
    def dropped(self) -> int:
        """Events that were not kept because a rank had more than the bound."""
        return sum(recording.dropped for recording in self._recordings if recording)

    @property
    def note(self) -> str:
        """A sentence on what is missing; empty if nothing is."""
        silent = [rank for rank, recording in enumerate(self._recordings) if recording is None]
        parts = [f"the last {self.dropped} events were not kept"] if self.dropped else []
        parts += [f"nothing came from rank {', '.join(map(str, silent))}"] if silent else []
        return "; ".join(parts)

    @cached_property
    def events(self) -> list[Event]:
        """All events, rank by rank, each rank's in order of time."""
        return list(self._events(0.0, float("inf")))

    def events_between(self, start: float, end: float) -> list[Event]:
        """The events that overlap the time from `start` to `end` (seconds)."""
        return list(self._events(start, end))

    def _events(self, start: float, end: float) -> Iterator[Event]:
        for rank, recording in enumerate(self._recordings):
            for kind, *rest in recording.rows if recording else ():
                if rest[1] >= start and rest[0] <= end:
                    yield Event(rank, KINDS[kind], *rest)

    def ledger(self) -> list[dict[str, Traffic]]:
        """Messages and bytes of each rank by operation: `ledger()[rank]["all_reduce"].messages`, `.nbytes`."""
        return [recording.ledger if recording else {} for recording in self._recordings]

    def shares(self, rank: int | None = None) -> Shares:
        """The fractions of compute, communication and waiting: of one rank, or of all ranks' time together."""
        recordings = self._recordings if rank is None else [self._recordings[rank]]
        seconds = [recording.seconds for recording in recordings if recording]
        return Shares.of([sum(column) for column in zip(*seconds, strict=True)] or [0.0] * len(KINDS))

    def plot(
        self, path: str | os.PathLike[str] | None = None, start: float = 0.0, end: float | None = None, title: str = ""
    ) -> Figure:
        """Draw the Gantt picture, a row a rank, from `start` to `end` (seconds); saved to `path` if given.

        Returns the matplotlib figure, which a notebook shows.
        """
        from minidl.plots import timeline

        rows = self.events_between(start, float("inf") if end is None else end)
        figure = timeline.draw(
            [(event.rank, event.kind, event.start, event.end, event.label) for event in rows],
            ranks=self.size,
            source=self.source,
            start=start,
            end=end,
            title=title,
            note=self.note,
        )
        if path is not None:
            figure.savefig(path)
        return figure

    def to_chrome(self, path: str | os.PathLike[str]) -> None:
        """Write the events as Chrome trace-event JSON (times in microseconds, a track a rank), which Perfetto opens.

        Each communicator call is a slice that holds the slices of its messages. Source of the format:
        https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event Format).
        """
        slices: list[dict[str, Any]] = [
            {"ph": "M", "pid": 0, "name": "process_name", "args": {"name": f"minidl ({self.source})"}}
        ]
        for rank in range(self.size):
            slices.append({"ph": "M", "pid": 0, "tid": rank, "name": "thread_name", "args": {"name": f"rank {rank}"}})
            slices.append({"ph": "M", "pid": 0, "tid": rank, "name": "thread_sort_index", "args": {"sort_index": rank}})
        slices += self._call_slices()
        for event in self.events:
            name = event.kind if event.operation or not event.label else event.label
            details = {"bytes": event.nbytes, "peer": event.peer, "label": event.label, "operation": event.operation}
            slices.append(_slice(name, event.kind, event.rank, event.start, event.end, details))
        document = {
            "traceEvents": slices,
            "displayTimeUnit": "ms",
            "otherData": {"source": self.source, "note": self.note},
        }
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file, separators=(",", ":"))

    def _call_slices(self) -> Iterator[dict[str, Any]]:
        """One slice for each communicator call, from its first message to its last."""
        first: Event | None = None
        last: Event | None = None
        for event in [*self.events, None]:
            if (
                first
                and last
                and (not event or (event.rank, event.call) != (first.rank, first.call) or not event.operation)
            ):
                details = {"label": first.label, "call": first.call}
                yield _slice(first.operation, "call", first.rank, first.start, last.end, details)
                first = None
            if event and event.operation:
                first, last = first or event, event


def _slice(name: str, kind: str, rank: int, start: float, end: float, details: dict[str, Any]) -> dict[str, Any]:
    begin = round(start * 1e6, 3)
    duration = round(end * 1e6, 3) - begin
    place = {"ph": "X", "pid": 0, "tid": rank, "ts": begin, "dur": round(duration, 3)}
    return {**place, "name": name, "cat": kind, "args": details}
