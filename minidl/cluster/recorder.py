"""What one rank writes down while it runs: the events of its communicator calls and the ledger of its messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

KINDS = ("compute", "send", "receive", "reduce", "wait")
COMPUTE, SEND, RECEIVE, REDUCE, WAIT = range(5)


class Traffic(NamedTuple):
    """Messages and bytes that a rank sent and received in one operation."""

    messages: int = 0
    nbytes: int = 0
    messages_received: int = 0
    nbytes_received: int = 0


class Shares(NamedTuple):
    """Fractions of a rank's time; they add up to 1. Communication includes the arithmetic inside reductions."""

    compute: float
    communication: float
    waiting: float

    @classmethod
    def of(cls, seconds: list[float]) -> Shares:
        """The shares that belong to the seconds spent in each of KINDS."""
        total = sum(seconds) or 1.0
        return cls(
            seconds[COMPUTE] / total,
            (seconds[SEND] + seconds[RECEIVE] + seconds[REDUCE]) / total,
            seconds[WAIT] / total,
        )


# An event as a rank writes it: index into KINDS, start, end, bytes, peer (-1: none), label, operation, call
Row = tuple[int, float, float, int, int, str, str, int]


@dataclass(frozen=True)
class Recording:
    """All that a rank has written down; `rows` ends early when there were more than the bound."""

    rows: list[Row]
    dropped: int
    seconds: list[float]
    ledger: dict[str, Traffic]


class Recorder:
    """Writes the events of one rank.

    Time outside communicator calls is compute, under the label of the last `mark`. Time inside belongs to the call's
    messages: each runs from the end of the one before, up to the moment the other side had posted its half it is
    waiting, and after that transfer. After `max_events` only the ledger and the sums go on.
    """

    __slots__ = (
        "_counts",
        "_dropped",
        "_label",
        "_last",
        "_max_events",
        "_now",
        "_rows",
        "_seconds",
        "call",
        "operation",
    )

    def __init__(self, now: Callable[[], float], max_events: int) -> None:
        self._now = now
        self._max_events = max_events
        self._rows: list[Row] = []
        self._dropped = 0
        self._seconds = [0.0] * len(KINDS)
        self._counts: dict[str, list[int]] = {}
        self._label = ""
        self.call = 0
        self._last = now()
        self.operation: str | None = None

    def mark(self, label: str) -> None:
        """From here on, compute goes under this label."""
        self._add(COMPUTE, self._now(), 0, -1, "")
        self._label = label

    def enter(self, operation: str) -> None:
        """A communicator call begins."""
        self._add(COMPUTE, self._now(), 0, -1, "")
        self.call += 1
        self.operation = operation
        if operation not in self._counts:
            self._counts[operation] = [0, 0, 0, 0]

    def leave(self) -> None:
        """The communicator call has ended."""
        self.operation = None

    def sent(self, nbytes: int, peer: int) -> None:
        """A message has been handed over (an eager one) or posted (a synchronous one)."""
        counts = self._counts[self.operation or ""]
        counts[0] += 1
        counts[1] += nbytes
        self._add(SEND, self._now(), nbytes, peer, self.operation or "")

    def delivered(self, peer: int, peer_posted: float | None) -> None:
        """The receiver has a synchronous message, for which it posted its receive at `peer_posted`."""
        self._transfer(SEND, 0, peer, peer_posted)

    def received(self, nbytes: int, peer: int, peer_posted: float | None) -> None:
        """A message is here, which its sender posted at `peer_posted`."""
        counts = self._counts[self.operation or ""]
        counts[2] += 1
        counts[3] += nbytes
        self._transfer(RECEIVE, nbytes, peer, peer_posted)

    def reduced(self, nbytes: int) -> None:
        """Two arrays have been combined."""
        self._add(REDUCE, self._now(), nbytes, -1, self.operation or "")

    def _transfer(self, kind: int, nbytes: int, peer: int, peer_posted: float | None) -> None:
        now = self._now()
        if peer_posted is not None and peer_posted > self._last:
            self._add(WAIT, min(peer_posted, now), 0, peer, self.operation or "")
        self._add(kind, now, nbytes, peer, self.operation or "")

    def _add(self, kind: int, end: float, nbytes: int, peer: int, operation: str) -> None:
        start = self._last
        self._last = end
        self._seconds[kind] += end - start
        if len(self._rows) < self._max_events:
            self._rows.append((kind, start, end, nbytes, peer, self._label, operation, self.call))
        else:
            self._dropped += 1

    @property
    def bytes_sent(self) -> int:
        return sum(counts[1] for counts in self._counts.values())

    def shares(self) -> Shares:
        """The shares of this rank's time up to now."""
        return Shares.of(self._seconds)

    def close(self) -> Recording:
        """The program has returned (or failed): what was recorded."""
        self._add(WAIT if self.operation else COMPUTE, self._now(), 0, -1, self.operation or "")
        ledger = {operation: Traffic(*counts) for operation, counts in self._counts.items()}
        return Recording(self._rows, self._dropped, self._seconds, ledger)
