"""A trace as a run of the player: each wait and each message with the event of the other rank that belongs to it."""

from __future__ import annotations

from collections.abc import Sequence

from minidl.cluster.trace.chrome_trace import arrows
from minidl.cluster.trace.recording import Event
from minidl.plots.player.columns import Played

MOST_EVENTS = 1_000_000
"""Events of a page. Those of a longer run that begin later are left out, and the page says so."""


def played(events: Sequence[Event], start: float, end: float, most: int = MOST_EVENTS) -> tuple[list[Played], str]:
    """Return the events between two times with their causes, and a note if there are more than `most`.

    The cause of a send is its receive, and that of a receive the event in which it was posted. The cause of a wait is
    what the other rank does with the message that follows the wait in the same call.
    """
    shown = [event for event in events if event.end >= start and event.start <= end]
    note = ""
    if len(shown) > most:
        last = sorted(event.start for event in shown)[most]
        kept = [event for event in shown if event.start < last]
        note = f"the first {len(kept):,} of {len(shown):,} events, which start before {last:.6g} s"
        shown = kept
    causes = [-1] * len(shown)
    ends: dict[int, int] = {}
    for number, message in enumerate(arrows(shown)):
        if message >= 0 and (other := ends.setdefault(message, number)) != number:
            causes[number], causes[other] = other, number
    posts = {(event.rank, event.peer, event.posted): cause for event, cause in zip(shown, causes, strict=True)
             if event.kind == "send" and cause >= 0}  # fmt: skip
    following: dict[tuple[int, int, int, int], int] = {}  # the next message of a call with a peer
    for number in range(len(shown) - 1, -1, -1):
        event = shown[number]
        key = event.rank, event.lane, event.call, event.peer
        if event.kind == "wait":
            causes[number] = following.get(key, -1)
        elif event.kind in ("send", "receive"):
            if event.kind == "send" and event.peer_posted is not None:  # a send that was posted before is delivered
                causes[number] = posts.get((event.rank, event.peer, event.posted), -1)
            following[key] = causes[number]
    return [
        Played(
            event.rank, event.kind, event.start, event.end, event.nbytes, event.peer, event.label, event.operation,
            event.call, event.lane, event.axis, cause, _ready(event),
        )
        for event, cause in zip(shown, causes, strict=True)
    ], note  # fmt: skip


def _ready(event: Event) -> float:
    """When both sides of a message were ready; the start of the event if that is unknown."""
    if event.posted is None or event.peer_posted is None:
        return event.start
    return min(max(event.posted, event.peer_posted), event.end)
