"""A network that is slower than this machine, emulated: when messages may be delivered, by the model alpha + n beta.

Every rank has one port out and one port in. A message of n bytes occupies the sender's port out and the receiver's
port in for alpha + n beta seconds. The transfer starts when both ports are free and, if the message is large, its
receive has been posted. The message is delivered when the transfer has ended.

The receiver decides when a transfer starts. The sender learns that the receiver's port was busy only from the
acknowledgement of a large message; after short messages its own port may therefore count as free too early. The time
that the machine itself needs is added, so a network faster than the machine cannot be emulated.
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
    """The two ports of one rank, and until when each is occupied, in seconds of the run's clock."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._out_free = 0.0
        self._in_free = 0.0

    def leave(self, posted: float, nbytes: int) -> float:
        """Occupy the port out for a message posted at `posted`; return when its transfer can start."""
        start = max(posted, self._out_free)
        self._out_free = start + self._network.time(nbytes)
        return start

    def arrive(self, start: float, nbytes: int) -> float:
        """Occupy the port in for a transfer that can start at `start` at the earliest; return when it ends."""
        self._in_free = max(start, self._in_free) + self._network.time(nbytes)
        return self._in_free

    def acknowledged(self, now: float) -> None:
        """A large message has been received; it may have occupied the port out until now."""
        self._out_free = max(self._out_free, now)


class DelayQueue(Generic[T]):
    """Items that are held back, each until it is due."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, T]] = []
        self._pushed = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    @property
    def next_due(self) -> float:
        """When the first item is due."""
        return self._heap[0][0]

    def push(self, due: float, item: T) -> None:
        """Hold the item back until `due`."""
        self._pushed += 1
        heapq.heappush(self._heap, (due, self._pushed, item))

    def pop(self) -> T:
        """The item that is due first; if several are, the one that was pushed first."""
        return heapq.heappop(self._heap)[2]
