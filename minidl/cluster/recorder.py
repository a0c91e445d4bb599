"""What one rank writes down while it runs: the events of its communicator calls and the ledger of its messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from minidl.cluster.call_site import Caller

KINDS = ("compute", "send", "receive", "reduce", "wait", "fault")
COMPUTE, SEND, RECEIVE, REDUCE, WAIT, FAULT = range(6)


class Traffic(NamedTuple):
    """Messages and bytes that a rank sent and received in one operation."""

    messages: int = 0
    nbytes: int = 0
    messages_received: int = 0
    nbytes_received: int = 0


class Shares(NamedTuple):
    """Fractions of a rank's time, which add up to 1, or are all 0 where no time has passed.

    Communication includes the arithmetic inside reductions.
    """

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


class Begun(NamedTuple):
    """A call that goes on beside the program: `isend`, `irecv`, or a collective with `async_op=True`."""

    operation: str
    call: int  # its number among the rank's communicator calls
    caller: Caller


# An event as a rank writes it: index into KINDS, start, end, bytes, peer (-1: none), label, operation, call, lane; and
# of a message when this side posted its half, and when the other side did (None: unknown)
Row = tuple[int, float, float, int, int, str, str, int, int, float | None, float | None]


@dataclass(frozen=True)
class Recording:
    """All that a rank has written down, lane by lane; `rows` of a lane end early when there were more than the bound.

    `seconds` (by kind) are those of the program itself, lane 0: what runs beside it takes no time of its own.
    """

    rows: list[Row]
    dropped: int
    seconds: list[float]
    ledger: dict[str, Traffic]


class CallObserver(Protocol):
    """Hears of each communicator call of the program while it is made."""

    def entered(self, operation: str, call: int) -> None: ...

    def left(self) -> None: ...


class Recorder:
    """Writes the events of one rank.

    Time outside communicator calls is compute, under the label of the last `mark`. Time inside belongs to the call's
    messages: each runs from the end of the one before, up to the moment the other side had posted its half it is
    waiting, and after that transfer. After `max_events` only the ledger and the sums go on.

    Lane 0 is the program; collectives that run beside it (`async_op=True`) write into lanes of their own, each of which
    is the affair of one thread.
    """

    __slots__ = (
        "_calls",
        "_count",
        "_counts",
        "_dropped",
        "_is_full",
        "_label",
        "_lane",
        "_lanes",
        "_last",
        "_max_events",
        "_now",
        "_rows",
        "_seconds",
        "begun",
        "call",
        "operation",
    )

    def __init__(
        self, now: Callable[[], float], max_events: int, lane: int = 0, calls: CallObserver | None = None
    ) -> None:
        self._now = now
        self._calls = calls
        self._max_events = max_events
        self._is_full = max_events == 0
        self._lane = lane
        self._lanes: dict[int, Recorder] = {}
        self._rows: list[Row] = []
        self._dropped = 0
        self._seconds = [0.0] * len(KINDS)
        self._counts: dict[str, list[int]] = {}
        self._count = [0, 0, 0, 0]  # of the operation at hand: messages and bytes sent, messages and bytes received
        self._label = ""
        self.call = 0
        self._last = now()
        self.operation: str | None = None
        self.begun: Begun | None = None  # what the program waited for when that failed

    def lane(self, number: int) -> Recorder:
        """The recorder of what runs beside the program in that lane."""
        if number not in self._lanes:
            self._lanes[number] = Recorder(self._now, self._max_events, number)
        return self._lanes[number]

    def mark(self, label: str) -> None:
        """From here on, compute goes under this label."""
        self._add(COMPUTE, self._now(), 0, -1, "")
        self._label = label

    def worked(self, label: str) -> None:
        """What was computed since the last call or mark goes under this label, and nothing after it."""
        self._label, before = label or self._label, self._label
        self._add(COMPUTE, self._now(), 0, -1, "")
        self._label = before

    def enter(self, operation: str) -> None:
        """A communicator call begins."""
        self._add(COMPUTE, self._now(), 0, -1, "")
        self._begin(operation, self.call + 1)
        if self._calls is not None:
            self._calls.entered(operation, self.call)

    def begin(self, operation: str, call: int) -> None:
        """A call that was numbered by the program begins in this lane, which was idle until now."""
        self._last = self._now()
        self._begin(operation, call)

    def _begin(self, operation: str, call: int) -> None:
        self.call = call
        self.operation = operation
        self.begun = None
        count = self._counts.get(operation)
        if count is None:
            count = self._counts[operation] = [0, 0, 0, 0]
        self._count = count

    def leave(self) -> None:
        """The communicator call has ended."""
        self.operation = None
        if self._calls is not None:
            self._calls.left()

    def sent(self, nbytes: int, peer: int, posted: float) -> None:
        """A message has been handed over (an eager one) or posted (a synchronous one)."""
        count = self._count
        count[0] += 1
        count[1] += nbytes
        now = self._now()
        if self._is_full and now == self._last:
            self._dropped += 1
        else:
            self._add(SEND, now, nbytes, peer, self.operation or "", posted)

    def delivered(self, peer: int, posted: float, peer_posted: float | None) -> None:
        """The receiver has a synchronous message, for which it posted its receive at `peer_posted`."""
        self._transfer(SEND, 0, peer, posted, peer_posted)

    def received(self, nbytes: int, peer: int, posted: float, peer_posted: float | None) -> None:
        """A message is here, which its sender posted at `peer_posted`."""
        count = self._count
        count[2] += 1
        count[3] += nbytes
        self._transfer(RECEIVE, nbytes, peer, posted, peer_posted)

    def reduced(self, nbytes: int) -> None:
        """Two arrays have been combined."""
        now = self._now()
        if self._is_full and now == self._last:
            self._dropped += 1
        else:
            self._add(REDUCE, now, nbytes, -1, self.operation or "")

    def waited(self, peer: int = -1) -> None:
        """Time has passed in a call that waits for what runs beside the program, or for what another rank does."""
        self._add(WAIT, self._now(), 0, peer, self.operation or "")

    def laid_out(self, nbytes: int) -> None:
        """This rank has put so many bytes where others read them."""
        self._add(SEND, self._now(), nbytes, -1, self.operation or "")

    def took(self, nbytes: int, peer: int) -> None:
        """This rank has taken so many bytes from where another has put them."""
        self._add(RECEIVE, self._now(), nbytes, peer, self.operation or "")

    def exchanged(self, messages: int, nbytes: int) -> None:
        """The engine's own way is done: for the ledger, as many messages and bytes have gone out as have come in."""
        self._count[:] = [a + b for a, b in zip(self._count, (messages, nbytes) * 2, strict=True)]
        self._add(RECEIVE, self._now(), 0, -1, self.operation or "")

    def fault(self, what: str) -> None:
        """A fault on purpose has taken effect; it is kept beyond the bound, because there are few."""
        now = self._now()
        self._rows.append((FAULT, now, now, 0, -1, what, self.operation or "", self.call, self._lane, None, None))

    def _transfer(self, kind: int, nbytes: int, peer: int, posted: float, peer_posted: float | None) -> None:
        now, last = self._now(), self._last
        until = last if peer_posted is None or peer_posted <= last else min(peer_posted, now)  # of waiting
        if self._is_full:  # the sums alone, without a call: simulations make millions of messages
            if until > last:
                self._seconds[WAIT] += until - last
                last = until
                self._dropped += 1
            self._seconds[kind] += now - last
            self._last = now
            self._dropped += 1
            return
        if until > last:
            self._add(WAIT, until, 0, peer, self.operation or "", posted, peer_posted)
        self._add(kind, now, nbytes, peer, self.operation or "", posted, peer_posted)

    def _add(
        self,
        kind: int,
        end: float,
        nbytes: int,
        peer: int,
        operation: str,
        posted: float | None = None,
        peer_posted: float | None = None,
    ) -> None:
        start = self._last
        self._last = end
        self._seconds[kind] += end - start
        if len(self._rows) < self._max_events:
            self._rows.append(
                (kind, start, end, nbytes, peer, self._label, operation, self.call, self._lane, posted, peer_posted)
            )
        else:
            self._is_full = True
            self._dropped += 1

    @property
    def bytes_sent(self) -> int:
        return sum(count[1] for recorder in (self, *self._lanes.values()) for count in recorder._counts.values())

    def shares(self) -> Shares:
        """The shares of this rank's time up to now."""
        return Shares.of(self._seconds)

    def close(self) -> Recording:
        """The program has returned (or failed): what was recorded."""
        self._add(WAIT if self.operation else COMPUTE, self._now(), 0, -1, self.operation or "")
        recorders = [self, *(self._lanes[number] for number in sorted(self._lanes))]
        counts: dict[str, list[int]] = {}
        for recorder in recorders:
            for operation, count in recorder._counts.items():
                total = counts.setdefault(operation, [0] * len(count))
                total[:] = [a + b for a, b in zip(total, count, strict=True)]
        return Recording(
            [row for recorder in recorders for row in recorder._rows],
            sum(recorder._dropped for recorder in recorders),
            self._seconds,
            {operation: Traffic(*count) for operation, count in counts.items()},
        )
