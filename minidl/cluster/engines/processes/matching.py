"""Which receive takes which message: receives that were posted early wait here, and so do messages that came early.

A message goes to the first receive that was posted for its sender and tag; a receive takes the first message that came
from any of its senders with its tag. That is MPI's rule, by which messages of one sender and tag keep their order.
"""

from __future__ import annotations

from collections import deque

from minidl.cluster.engines.processes.frames import Frame
from minidl.cluster.engines.protocol import Pending


class Matching:
    """The posted receives and the early messages of one rank."""

    def __init__(self) -> None:
        self._receives: list[Pending] = []  # in the order of posting
        self._arrived: dict[tuple[int, int], deque[tuple[int, Frame]]] = {}  # by (source, tag), numbered as they came
        self._arrivals = 0

    def post(self, operation: Pending) -> tuple[int, Frame] | None:
        """The message that a new receive takes, and its sender; None if the receive has to wait."""
        sources = (operation.peer,) if isinstance(operation.peer, int) else operation.peer
        tag = operation.tag
        waiting = [(queue[0][0], source) for source in sources if (queue := self._arrived.get((source, tag)))]
        if not waiting:
            self._receives.append(operation)
            return None
        _, source = min(waiting)  # the one that arrived first
        queue = self._arrived[source, tag]
        _, frame = queue.popleft()
        if not queue:
            del self._arrived[source, tag]
        return source, frame

    def arrive(self, source: int, tag: int) -> Pending | None:
        """The receive that takes a new message; None if the message has to wait, see `keep`."""
        for operation in self._receives:
            peer = operation.peer
            if operation.tag == tag and (source == peer if isinstance(peer, int) else source in peer):
                self._receives.remove(operation)
                return operation
        return None

    def keep(self, source: int, frame: Frame) -> None:
        """Let a message wait for its receive."""
        self._arrivals += 1
        self._arrived.setdefault((source, frame.tag), deque()).append((self._arrivals, frame))
