"""The critical path of a run: the chain of work and messages that determined its duration."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, overload

from minidl.cluster.trace.recording import KINDS, Event, Shares

Track = tuple[int, int]  # rank and lane; lane 0 is the program


class CriticalPath(Sequence[Event]):
    """The events that make up the duration of a run, in order of time, each cut to the interval on the path.

    Each event begins where the previous one ended: on the same rank or, if the event had to wait for another rank's
    half of a message, on that rank. Shortening an event that is not on the path does not shorten the run. `note` says
    what is missing.
    """

    def __init__(self, events: list[Event], note: str = "") -> None:
        self._events = events
        self.note = note

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        return self._events[index]

    def __len__(self) -> int:
        return len(self._events)

    def __repr__(self) -> str:
        return f"<CriticalPath: {len(self)} events, {self.seconds:.6g} s>"

    @property
    def seconds(self) -> float:
        """The duration of the path in seconds."""
        return self._events[-1].end - self._events[0].start if self._events else 0.0

    def shares(self, rank: int | None = None) -> Shares:
        """Return the fractions of compute, communication and waiting on the path, or in its events on one rank."""
        seconds = dict.fromkeys(KINDS, 0.0)
        for event in self._events:
            if rank in (None, event.rank):
                seconds[event.kind] += event.end - event.start
        return Shares.of(list(seconds.values()))

    def seconds_of_ranks(self) -> dict[int, float]:
        """Return the seconds that each rank contributes, the largest first."""
        seconds: dict[int, float] = {}
        for event in self._events:
            seconds[event.rank] = seconds.get(event.rank, 0.0) + event.end - event.start
        return dict(sorted(seconds.items(), key=lambda item: -item[1]))

    def summary(self, ranks: int = 4) -> str:
        """Describe the path: the shares of its activities, and a line for each of the `ranks` largest contributors."""
        if not self._events:
            return "critical path: there are no events"
        by_rank = self.seconds_of_ranks()
        lines = [f"critical path: {self.seconds:.3g} s, {_in_words(self.shares())}"]
        for rank, seconds in list(by_rank.items())[:ranks]:
            lines.append(f"  rank {rank}: {_percent(seconds, self.seconds)} of it, {_in_words(self.shares(rank))}")
        if len(by_rank) > ranks:
            rest = sum(list(by_rank.values())[ranks:])
            lines.append(f"  {len(by_rank) - ranks} other ranks: {_percent(rest, self.seconds)} of it")
        return "\n".join([*lines, f"  ({self.note})"] if self.note else lines)


def find_critical_path(events: Iterable[Event], is_simulated: bool) -> CriticalPath:
    """Walk backwards from the end of the rank that ended last, from each event to the one that it had to wait for.

    That is the previous event on the same rank; for the transfer of a message, the half that was posted later, on this
    or the other rank. Source: Yang, Miller (1988), Critical Path
    Analysis for the Execution of Parallel and Distributed Programs, ICDCS, section 3: the longest path through the
    graph of a program's activities, which in a run with known times is found backwards from its end.
    """
    tracks = _Tracks(events)
    path: list[Event] = []
    if not tracks.events:
        return CriticalPath(path)
    track = max(tracks.events, key=lambda one: (tracks.events[one][-1].end, -one[1], -one[0]))
    time = tracks.events[track][-1].end
    tried = {track}  # tracks that have been visited at this very moment
    while True:
        event = tracks.before(track, time)
        if event is None or event.end < time:
            if track[1] == 0:
                break  # the beginning, or events are missing
            begun = tracks.begun(track, time)
            step = Step(begun, (track[0], 0)) if event is None or event.end < begun else Step(event.end, track)
            event = Event(track[0], "wait", step.time, time, 0, -1, "", "", 0, track[1])  # the helper wakes up
        else:
            step = _step(event, time, tracks, is_simulated)
            if step.time == time and step.track in tried:
                step = Step(event.start, track)  # messages that take no time, in a circle: none is the cause
        if step.time < time:
            path.append(event._replace(start=step.time, end=time))
            tried.clear()
        track, time = step.track, step.time
        tried.add(track)
    path.reverse()
    if event is None and time <= tracks.begin(track):
        return CriticalPath(path)
    return CriticalPath(path, f"it begins at {time:.6g} s: events of rank {track[0]} before that were not kept")


class Step(NamedTuple):
    """The previous point of the path: a time and the track that was active then."""

    time: float
    track: Track


def _step(event: Event, time: float, tracks: _Tracks, is_simulated: bool) -> Step:
    """The point before `event`, which is on the path from there until `time`."""
    here = event.rank, event.lane
    if event.kind == "wait" and time == event.end:
        if event.peer >= 0:
            return Step(time, tracks.of_peer(event))
        return tracks.helper(event.rank, event.start, time) or Step(event.start, here)
    if event.kind not in ("send", "receive") or event.posted is None or event.peer_posted is None:
        return Step(event.start, here)
    if is_simulated or event.peer_posted >= event.start:  # the transfer ran from when the later half was posted
        is_peers = event.peer_posted > event.posted
        began = event.peer_posted if is_peers else event.posted
        return Step(min(began, time), tracks.of_peer(event) if is_peers else here)
    # A real transfer whose halves were both posted before: it lasted as long as the receiver worked on it
    receive = tracks.receive_of(event) if event.kind == "send" else None
    if receive is not None and event.start < receive.end <= time:
        return Step(receive.end, (receive.rank, receive.lane))
    return Step(event.start, here)


class _Tracks:
    """The events by track, and the two ends of every message by sender, receiver and time of posting."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events: dict[Track, list[Event]] = {}
        self._senders: dict[tuple[int, int, float], Track] = {}
        self._receives: dict[tuple[int, int, float], Event] = {}
        for event in events:
            if event.kind == "send" and event.posted is not None and event.peer_posted is None:
                self._senders[event.rank, event.peer, event.posted] = event.rank, event.lane
            elif event.kind == "receive" and event.peer_posted is not None:
                self._receives[event.peer, event.rank, event.peer_posted] = event
            if event.end > event.start:
                self.events.setdefault((event.rank, event.lane), []).append(event)
        self._starts = {track: [event.start for event in events] for track, events in self.events.items()}

    def before(self, track: Track, time: float) -> Event | None:
        """The last event of the track that began before that time."""
        index = bisect_left(self._starts.get(track, ()), time) - 1
        return self.events[track][index] if index >= 0 else None

    def begin(self, track: Track) -> float:
        """The start of the first event of the track, or of all events if it has none."""
        return self._starts[track][0] if track in self._starts else min(starts[0] for starts in self._starts.values())

    def begun(self, track: Track, time: float) -> float:
        """The time at which the program began the call that the helper began in the lane at `time`."""
        lane, program = self.events.get(track, []), self.events.get((track[0], 0), [])
        index = bisect_left(lane, time, key=lambda event: event.start)
        after = bisect_left(program, lane[index].call, key=lambda event: event.call) if index < len(lane) else 0
        return min(program[after].start, time) if index < len(lane) and after < len(program) else time

    def of_peer(self, event: Event) -> Track:
        """The track on which the other side posted its half of the message; its program's track if that is unknown."""
        if event.kind != "send" and event.peer_posted is not None:
            sender = self._senders.get((event.peer, event.rank, event.peer_posted))
            if sender is not None:
                return sender
        receive = self.receive_of(event)
        return (event.peer, 0) if receive is None else (receive.rank, receive.lane)

    def receive_of(self, event: Event) -> Event | None:
        """The receive of a sent message."""
        return None if event.posted is None else self._receives.get((event.rank, event.peer, event.posted))

    def helper(self, rank: int, start: float, end: float) -> Step | None:
        """The latest end of a lane that ran while the program waited for one of its lanes."""
        steps: Iterator[Step] = (
            Step(min(event.end, end), track)
            for track in self.events
            if track[0] == rank and track[1] > 0 and (event := self.before(track, end)) is not None
        )
        return max((step for step in steps if step.time > start), default=None)


def _in_words(shares: Shares) -> str:
    named = zip(("computing", "communicating", "waiting"), shares, strict=True)
    return ", ".join(f"{share:.0%} {name}" for name, share in named if share >= 0.005)


def _percent(seconds: float, total: float) -> str:
    return f"{seconds / total:.0%}" if total else "0%"
