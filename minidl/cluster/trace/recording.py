"""The finished record of one rank: its events, its time by activity, and its ledger of messages and bytes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Event(NamedTuple):
    """An activity of a rank.

    rank          the rank
    kind          "compute", "send", "receive", "reduce" (the arithmetic of a reduction), "wait" (until the other side
                  was ready) or "fault" (a planned one, at one moment)
    start, end    seconds since the program began on all ranks
    nbytes        bytes of a message or reduction
    peer          the other rank; -1: none; -2: this node's host memory (`HOST`)
    label         the last `comm.mark`, or a description of the fault
    operation     name of the communicator call that it belongs to; "" for compute
    call          number of that call
    lane          0: the program; other lanes: operations that ran concurrently with it (`async_op=True`)
    posted        when this side of a message was ready; None: unknown
    peer_posted   when the other side of a message was ready; None: unknown
    axis          axis of the mesh along which the communicator's ranks lie, "dp,pp" for several; "": not from a mesh
    """

    rank: int
    kind: str
    start: float
    end: float
    nbytes: int
    peer: int
    label: str
    operation: str
    call: int
    lane: int = 0
    posted: float | None = None
    peer_posted: float | None = None
    axis: str = ""


KINDS = ("compute", "send", "receive", "reduce", "wait", "fault")
COMPUTE, SEND, RECEIVE, REDUCE, WAIT, FAULT = range(6)
HOST = -2  # the peer of a transfer between a device and its host


# What the events of a communicator call share: label, operation, call, lane, axis
Place = tuple[str, str, int, int, str]

# An event of one rank: kind (an index into KINDS), start, end, nbytes, peer, posted, peer_posted, place
Row = tuple[int, float, float, int, int, float | None, float | None, Place]


class Traffic(NamedTuple):
    """The messages and bytes that a rank sent and received in one operation, and how often it called the operation."""

    messages: int = 0
    nbytes: int = 0
    messages_received: int = 0
    nbytes_received: int = 0
    calls: int = 0

    @classmethod
    def total(cls, some: Iterable[Traffic]) -> Traffic:
        """Return the sums over these records."""
        return cls(*map(sum, zip(*some, strict=True)))


class Shares(NamedTuple):
    """Fractions of a rank's time. They sum to 1, or are all 0 if no time has passed.

    `communication` includes the arithmetic of reductions.
    """

    compute: float
    communication: float
    waiting: float

    @classmethod
    def of(cls, seconds: list[float]) -> Shares:
        """Return the shares for the seconds spent in each of KINDS."""
        total = sum(seconds) or 1.0
        return cls(
            seconds[COMPUTE] / total,
            (seconds[SEND] + seconds[RECEIVE] + seconds[REDUCE]) / total,
            seconds[WAIT] / total,
        )


@dataclass(frozen=True)
class Recording:
    """The finished record of a rank.

    rows      events, lane by lane; at most `max_events` in each lane; rows of collectives that a simulation played at
              once are made during iteration
    dropped   number of events beyond that bound
    seconds   time of the program (lane 0) in each of KINDS; concurrent lanes are not counted
    ledger    messages and bytes by axis of a mesh, "" for none, and operation
    """

    rows: Collection[Row]
    dropped: int
    seconds: list[float]
    ledger: dict[str, dict[str, Traffic]]
