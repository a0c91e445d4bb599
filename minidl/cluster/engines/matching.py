"""Matching: which receive takes which message, whichever of the two comes first.

A message goes to the first receive that was posted for its sender and tag. A receive takes the first message that
arrived from one of its senders with its tag. This is MPI's rule: messages of one sender and tag keep their order.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from minidl.cluster.engines.protocol import Pending

Message = TypeVar("Message")


class Matching(Generic[Message]):
    """The receives of one rank that wait for a message, and the messages that wait for a receive."""

    def __init__(self) -> None:
        self._receives: list[Pending] = []  # in the order of posting
        self._arrived: dict[tuple[int, int], deque[tuple[int, Message]]] = {}  # by (source, tag), numbered by arrival
        self._arrivals = 0

    def post(self, receive: Pending) -> tuple[int, Message] | None:
        """The sender and the message that a new receive takes; None if it has to wait for one."""
        source, tag = receive.peer, receive.tag
        if not isinstance(source, int):
            waiting = [(queue[0][0], peer) for peer in source if (queue := self._arrived.get((peer, tag)))]
            _, source = min(waiting, default=(0, -1))  # the one that arrived first
        queue = self._arrived.get((source, tag))
        if queue is None:
            self._receives.append(receive)
            return None
        _, message = queue.popleft()
        if not queue:
            del self._arrived[source, tag]
        return source, message

    def arrive(self, source: int, tag: int) -> Pending | None:
        """The receive that takes a new message; None if the message has to wait (the caller then calls `keep`)."""
        for receive in self._receives:
            peer = receive.peer
            if receive.tag == tag and (source == peer if isinstance(peer, int) else source in peer):
                self._receives.remove(receive)
                return receive
        return None

    def keep(self, source: int, tag: int, message: Message) -> None:
        """Store a message until its receive is posted."""
        self._arrivals += 1
        self._arrived.setdefault((source, tag), deque()).append((self._arrivals, message))
