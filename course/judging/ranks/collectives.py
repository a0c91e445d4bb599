"""The collectives of a run, one by one, as the trace has them: when each began on a rank, and what it sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from minidl.cluster import Event

POINT_TO_POINT = frozenset({"send", "recv", "sendrecv", "isend", "irecv"})


@dataclass
class Collective:
    """One collective on one rank; with a single rank nothing is sent, and it is not in the trace.

    operation   its name, such as "all_reduce"
    begun       virtual second of its first message
    ended       virtual second of its last one
    messages    messages that the rank sent in it
    nbytes      bytes that the rank sent in it
    """

    operation: str
    begun: float
    ended: float
    messages: int = 0
    nbytes: int = 0


def collectives_of(events: Iterable[Event], p: int) -> list[list[Collective]]:
    """For each of p ranks, its collectives in the order of its calls."""
    found: list[dict[int, Collective]] = [{} for _ in range(p)]
    for event in events:
        if event.kind not in ("send", "receive") or event.operation in POINT_TO_POINT:
            continue
        begun = event.start if event.posted is None else event.posted
        one = found[event.rank].setdefault(event.call, Collective(event.operation, begun, event.end))
        one.begun, one.ended = min(one.begun, begun), max(one.ended, event.end)
        if event.kind == "send" and event.peer_posted is None:
            one.messages += 1
            one.nbytes += event.nbytes
    return [[own[call] for call in sorted(own)] for own in found]
