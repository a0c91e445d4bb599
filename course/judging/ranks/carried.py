"""Which ranks' values a chain of messages can have carried to each rank.

The processes of an answer's ranks are separated, but the separation has holes, and the inputs of a public case can be
computed from its seed. So a right result counts only if messages could have carried it. The trace has all messages, and
the order in which each rank sent and received them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

from minidl.cluster import Event

Channel = tuple[int, int, int, float | None]
"""Source, destination, bytes, and time of posting; messages that agree in these are received in their order."""


def heard_of(events: Iterable[Event], p: int) -> list[frozenset[int]]:
    """For each of p ranks: the ranks from which a chain of messages came to it, and itself.

    A message carries what its sender had heard of when it was posted. If the events are incomplete (the trace of a long
    run drops the last ones), every rank counts as having heard of all.
    """
    heard = [{rank} for rank in range(p)]
    carried: dict[Channel, deque[frozenset[int]]] = defaultdict(deque)
    left = [deque(own) for own in messages_of(events, p)]
    is_moving = True
    while is_moving:
        is_moving = False
        for rank, own in enumerate(left):
            while own and (is_send(own[0]) or carried[channel_of(own[0])]):
                event, is_moving = own.popleft(), True
                if is_send(event):
                    carried[channel_of(event)].append(frozenset(heard[rank]))
                else:
                    heard[rank] |= carried[channel_of(event)].popleft()
    if any(left):
        return [frozenset(range(p))] * p
    return [frozenset(known) for known in heard]


def messages_of(events: Iterable[Event], p: int) -> list[list[Event]]:
    """The messages that each rank posted and received, in the order in which it did so."""
    own: list[list[Event]] = [[] for _ in range(p)]
    for event in events:
        is_posted = event.kind == "send" and event.peer_posted is None
        if is_posted or event.kind == "receive":
            own[event.rank].append(event)
    for each in own:
        each.sort(key=lambda event: event.end)  # those of concurrent operations are in the trace behind the program's
    return own


def is_send(event: Event) -> bool:
    return event.kind == "send"


def channel_of(event: Event) -> Channel:
    if is_send(event):
        return event.rank, event.peer, event.nbytes, event.posted
    return event.peer, event.rank, event.nbytes, event.peer_posted
