"""A slower network than the machine has: when a message may be delivered, by the model alpha + n beta.

What is emulated: every rank has one port out and one port in. A message of n bytes occupies the sender's port out and
the receiver's port in for alpha + n beta seconds, from when both are free; a large one starts when its receive has been
posted. It is not delivered before that time has passed. The receiver decides when a transfer starts. The sender learns
of a port that was busy there only by the acknowledgement of a large message, so after short ones its own port may be
taken to be free too early. What the machine itself needs comes on top: a laptop cannot feel a network that is faster
than it is.
"""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

from minidl.cluster.cost.network import Network

T = TypeVar("T")


def check_emulated(network: Network | None) -> None:
    """Raise ValueError for a network that processes cannot emulate."""
    if network is not None and network.topology is not None:
        raise ValueError(
            f"processes cannot emulate the shared links of {network!r}: give a Network(alpha, beta), or run it with "
            'on="simulation"'
        )


class EmulatedPorts:
    """Until when the two ports of one rank are occupied, in seconds of the run's clock."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._out_free = 0.0
        self._in_free = 0.0

    def leave(self, posted: float, nbytes: int) -> float:
        """When a message that was posted then can leave; the port out is occupied from then on."""
        start = max(posted, self._out_free)
        self._out_free = start + self._network.time(nbytes)
        return start

    def arrive(self, start: float, nbytes: int) -> float:
        """When a message is here that can start then at the earliest; the port in is occupied until then."""
        self._in_free = max(start, self._in_free) + self._network.time(nbytes)
        return self._in_free

    def acknowledged(self, now: float) -> None:
        """A large message is at its receiver, so until now it may have occupied the port out."""
        self._out_free = max(self._out_free, now)


class DelayQueue(Generic[T]):
    """What is held back, each until its own time."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, T]] = []
        self._pushed = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def next_due(self) -> float:
        """When the first of them is due."""
        return self._heap[0][0]

    def push(self, due: float, item: T) -> None:
        """Hold it back until then."""
        self._pushed += 1
        heapq.heappush(self._heap, (due, self._pushed, item))

    def pop(self) -> T:
        """The one that is due first; of those due together, the one that came first."""
        return heapq.heappop(self._heap)[2]
