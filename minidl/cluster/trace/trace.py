"""The trace of a run: when every rank computed, sent, received and waited, and how many bytes it moved."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

from minidl.arguments import one_of
from minidl.cluster.trace import chrome_trace
from minidl.cluster.trace.bars import NO_AXIS, bars, bars_by_axis
from minidl.cluster.trace.critical_path import CriticalPath, find_critical_path
from minidl.cluster.trace.played import MOST_EVENTS, played
from minidl.cluster.trace.recording import KINDS, Event, Recording, Shares, Traffic
from minidl.cluster.trace.waited_for import seconds_waited_for
from minidl.plots import style, timeline
from minidl.plots.player.columns import Run
from minidl.plots.player.page import Player

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Event", "Trace", "play_traces", "plot_traces"]


class Trace:
    """The records of all ranks.

    source    origin of the times: "measured" or "simulated"
    size      number of ranks
    dropped   number of events that were not kept: each rank keeps only its first events, up to a bound

    The ledger and the shares always cover the whole run.
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
        """Number of events beyond the bound on events per rank, which were not kept."""
        return sum(recording.dropped for recording in self._recordings if recording)

    @property
    def note(self) -> str:
        """What is missing, as text; empty if nothing is."""
        silent = [rank for rank, recording in enumerate(self._recordings) if recording is None]
        parts = [f"the last {self.dropped} events were not kept"] if self.dropped else []
        parts += [f"nothing came from rank {', '.join(map(str, silent))}"] if silent else []
        return "; ".join(parts)

    @cached_property
    def events(self) -> list[Event]:
        """All events, ordered by rank, lane and time."""
        return list(self._events())

    def _events(self) -> Iterator[Event]:
        for rank, recording in enumerate(self._recordings):
            for row in recording.rows if recording else ():
                kind, start, end, nbytes, peer, posted, peer_posted, (label, operation, call, lane, axis) = row
                shared = label, operation, call, lane
                yield Event(rank, KINDS[kind], start, end, nbytes, peer, *shared, posted, peer_posted, axis)

    @property
    def faults(self) -> list[Event]:
        """The planned faults that took effect, ordered by rank; `label` describes each."""
        return [event for event in self.events if event.kind == "fault"]

    def ledger(self, axis: str | None = None) -> list[dict[str, Traffic]]:
        """Return messages, bytes and calls by rank and operation: `ledger()[rank]["all_reduce"].nbytes`.

        Parameters
            axis   only of communicators along this axis of a mesh, such as "tp", or "dp,pp" for `mesh["dp", "pp"]`;
                   "": only of those that are not from a mesh; None: all

        Raises
            ValueError    no rank has called a communicator along that axis

        >>> from minidl import cluster
        >>> def program(comm):
        ...     mesh = comm.mesh((2, 2), ("dp", "tp"))
        ...     mesh["tp"].send(b"along tp", 1 - mesh["tp"].rank)
        ...     return mesh["tp"].recv(1 - mesh["tp"].rank)
        >>> trace = cluster.launch(program, nodes=4, on="simulation").trace
        >>> trace.ledger("tp")[0]["send"].messages, trace.axes
        (1, ('', 'tp'))
        """
        ledgers = [recording.ledger if recording else {} for recording in self._recordings]
        if axis is None:
            return [_by_operation(ledger) for ledger in ledgers]
        if axis not in self.axes:
            known = ", ".join(map(repr, self.axes)) or "none"
            raise ValueError(f"no communicator along the axis {axis!r} was used; axes of this run: {known}")
        return [ledger.get(axis, {}) for ledger in ledgers]

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of meshes along which ranks have communicated; "" for communicators that are not from a mesh."""
        return tuple(sorted({axis for recording in self._recordings if recording for axis in recording.ledger}))

    def shares(self, rank: int | None = None) -> Shares:
        """Return the fractions of compute, communication and waiting in the time of one rank, or of all ranks."""
        recordings = self._recordings if rank is None else [self._recordings[rank]]
        seconds = [recording.seconds for recording in recordings if recording]
        return Shares.of([sum(column) for column in zip(*seconds, strict=True)] or [0.0] * len(KINDS))

    def waited_for(self) -> list[float]:
        """By rank, the seconds that the others waited because of it, directly or through ranks that waited for it.

        A straggler has most of them. Events that were not kept do not count.

        >>> from minidl import cluster
        >>> def program(comm):
        ...     comm.compute(seconds=comm.rank)
        ...     comm.barrier()
        >>> cluster.launch(program, nodes=3, on="simulation").trace.waited_for()
        [0.0, 0.0, 3.0]
        """
        return seconds_waited_for(self.events, self.size)

    def critical_path(self) -> CriticalPath:
        """Return the chain of work and messages that determined the run's duration; `.summary()` describes it.

        >>> from minidl import cluster
        >>> run = cluster.launch(lambda comm: comm.compute(seconds=comm.rank), nodes=2, on="simulation")
        >>> print(run.trace.critical_path().summary())
        critical path: 1 s, 100% computing
          rank 1: 100% of it, 100% computing
        """
        path = find_critical_path(self.events, self.source == "simulated")
        if self.dropped:
            path.note = "; ".join(note for note in (path.note, self.note) if note)
        return path

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        start: float = 0.0,
        end: float | None = None,
        title: str = "",
        critical_path: bool = False,
        by: str = "activity",
    ) -> Figure:
        """Draw the Gantt chart, one row per rank, and return the matplotlib figure.

        Parameters
            path            file to save the figure to; None: do not save
            start, end      the time shown, in seconds; None: until the end of the run
            title           title of the chart
            critical_path   whether to outline the critical path
            by              what the colours of communication show: "activity", such as sending, or "axis" of a mesh

        While a rank sends and receives at the same time, its bar has two halves: the send above, the receive below.
        Operations that ran concurrently with the program are thin tracks below its bar. Planned faults are marked.
        """
        return plot_traces([self], path, start, end, [title] if title else None, critical_path, by=by)

    def player(self, title: str = "", start: float = 0.0, end: float | None = None) -> Player:
        """The events as a page to be played, zoomed and searched; as the last value of a cell, JupyterLab shows it.

        Parameters
            title        heading of the page
            start, end   only events that overlap this time, in seconds; None: until the end of the run

        Of a run of more than a million events it shows the first million, and says so.

        >>> from minidl import cluster
        >>> run = cluster.launch(lambda comm: comm.barrier(), nodes=4, on="simulation", network="10gbe")
        >>> run.trace.player("A barrier")
        <Player: 4 ranks, 24 events, simulated>
        """
        return play_traces([self], title=title, start=start, end=end)

    def to_html(
        self, path: str | os.PathLike[str], title: str = "", start: float = 0.0, end: float | None = None
    ) -> None:
        """Write the page of `player` into a file. It is complete: it opens in any browser, without a network."""
        self.player(title, start, end).save(path)

    def _panel(self, start: float, end: float | None, title: str, with_critical_path: bool, by: str) -> timeline.Panel:
        """The contents of the chart as plain data."""
        outline = self.critical_path() if with_critical_path else ()
        rows, colours = bars, style.ACTIVITY
        if one_of("by", by, ("activity", "axis")) == "axis":
            rows, colours = bars_by_axis, style.axis_colours(axis or NO_AXIS for axis in self.axes)
        return timeline.Panel(
            list(rows(self.events, start, float("inf") if end is None else end)),
            ranks=self.size,
            source=self.source,
            title=title,
            note=self.note,
            outline=[(event.rank, event.lane, event.start, event.end) for event in outline],
            colours=colours,
        )

    def _run(self, title: str, start: float, end: float | None, most: int) -> Run:
        """The events as the player takes them."""
        last = inf if end is None else end
        events, left_out = played(self.events, start, last, most)
        path = self.critical_path() if events else ()
        return Run(
            events,
            self.size,
            self.source,
            title,
            note="; ".join(filter(None, [self.note, left_out])),
            path=[(one.rank, one.lane, one.start, one.end) for one in path if one.end >= start and one.start <= last],
            summary=path.summary() if path else "",
        )

    def to_chrome(self, path: str | os.PathLike[str]) -> None:
        """Write the events as Chrome trace-event JSON, which Perfetto opens: one track per rank, in microseconds.

        Each communicator call is a slice that contains the slices of its messages. Arrows lead from the sender of a
        message to its receiver. Operations that ran concurrently with the program have tracks of their own. A name that
        ends with ".gz" ("trace.json.gz") gives a compressed file of a tenth of the size, which Perfetto opens too.
        """
        chrome_trace.write(path, self._events, self.size, self.source, self.note)


def _by_operation(ledger: Mapping[str, Mapping[str, Traffic]]) -> dict[str, Traffic]:
    """The sums over the axes."""
    parts: dict[str, list[Traffic]] = {}
    for of_axis in ledger.values():
        for operation, traffic in of_axis.items():
            parts.setdefault(operation, []).append(traffic)
    return {operation: Traffic.total(some) for operation, some in parts.items()}


def _check_titles(titles: Sequence[str], traces: Sequence[Trace]) -> None:
    if len(titles) != len(traces):
        raise ValueError(f"titles must have one for each of the {len(traces)} traces, got {len(titles)}")


def play_traces(
    traces: Sequence[Trace],
    titles: Sequence[str] = (),
    title: str = "",
    start: float = 0.0,
    end: float | None = None,
) -> Player:
    """Several runs in one player, one above the other on one time axis.

    Parameters
        traces      the traces of the runs
        titles      a heading for each; none: no headings
        title       heading of the page
        start, end  only events that overlap this time, in seconds; None: until the end of the run

    Together they show at most a million events, the first of each, and the page says so.
    """
    headings = titles or [""] * len(traces)
    _check_titles(headings, traces)
    most = MOST_EVENTS // max(len(traces), 1)
    return Player([trace._run(each, start, end, most) for trace, each in zip(traces, headings, strict=True)], title)


def plot_traces(
    traces: Sequence[Trace],
    path: str | os.PathLike[str] | None = None,
    start: float = 0.0,
    end: float | None = None,
    titles: Sequence[str] | None = None,
    critical_path: bool = False,
    row_height: float = timeline.ROW_HEIGHT,
    by: str = "activity",
    own_axes: bool = False,
) -> Figure:
    """Draw the Gantt charts of several runs, for example measured and simulated, one above the other on one time axis.

    Parameters
        traces       the traces of the runs
        titles       a title for each trace
        row_height   inches between two ranks
        own_axes     give each run a time axis of its own, so that a short one can be read below a long one

    The other parameters are those of `Trace.plot`.
    """
    titles = [""] * len(traces) if titles is None else titles
    _check_titles(titles, traces)
    panels = [trace._panel(start, end, title, critical_path, by) for trace, title in zip(traces, titles, strict=True)]
    figure = timeline.compare(panels, start, end, row_height, own_axes)
    if path is not None:
        figure.savefig(path)
    return figure
