"""The recorder of one rank: it notes events while the rank runs, and counts messages and bytes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple, Protocol

from minidl.cluster.call_site import Caller, Site
from minidl.cluster.trace.recording import (
    COMPUTE,
    FAULT,
    HOST,
    KINDS,
    RECEIVE,
    REDUCE,
    SEND,
    WAIT,
    Place,
    Recording,
    Row,
    Shares,
    Traffic,
)
from minidl.cluster.trace.rows import FIELDS, Rows, RowsOfFields


class ConcurrentCall(NamedTuple):
    """A call that runs concurrently with the program: `isend`, `irecv`, or a collective with `async_op=True`."""

    operation: str
    call: int  # its number among the rank's communicator calls
    caller: Caller


class CallObserver(Protocol):
    """Is notified when each communicator call of the program begins and ends."""

    def entered(self, operation: str, call: int, site: Site | None = None) -> None: ...

    def left(self) -> None: ...


class Recorder:
    """Records the events of one rank.

    now          the clock, in seconds
    max_events   events kept in each lane; beyond it only the ledger and the sums of seconds are updated
    lane         0 for the program; concurrent collectives (`async_op=True`) have lanes 1, 2, ..., one thread each
    calls        observer that is notified of each communicator call of the program

    Time outside communicator calls is compute, labelled by the last `mark`. Inside a call, each message's interval
    starts where the previous one ended: first waiting for the peer, then the transfer.
    """

    __slots__ = (
        "_axis",
        "_blocks",
        "_calls",
        "_count",
        "_counts",
        "_dropped",
        "_fields",
        "_is_full",
        "_label",
        "_lane",
        "_lanes",
        "_max_events",
        "_most_fields",
        "_now",
        "call",
        "concurrent_call",
        "last",
        "operation",
        "place",
        "seconds",
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
        self._fields: list[Any] = []  # of rows
        self._most_fields = max_events * FIELDS
        self._blocks: list[Collection[Row]] = []  # what came before `_fields`
        self._dropped = 0
        self.seconds = [0.0] * len(KINDS)
        self._axis = ""
        self._counts: dict[tuple[str, str], list[int]] = {}  # by axis and operation
        self._count = [0] * len(Traffic())  # of the current operation
        self._label = ""
        self.call = 0
        self.last = now()
        self.operation: str | None = None
        self.place: Place = "", "", 0, lane, ""  # of the next event
        self.concurrent_call: ConcurrentCall | None = None  # the concurrent call whose wait failed

    def lane(self, number: int) -> Recorder:
        """The recorder of that lane."""
        if number not in self._lanes:
            self._lanes[number] = Recorder(self._now, self._max_events, number)
        return self._lanes[number]

    def mark(self, label: str) -> None:
        """Label the compute from here on."""
        self._computed()
        self._label = label
        self.place = self._placed(self.operation or "")

    def worked(self, label: str) -> None:
        """Label the compute since the last call or mark, and only that."""
        self._label, before = label or self._label, self._label
        self._computed()
        self._label = before
        self.place = self._placed(self.operation or "")

    def enter(self, operation: str, axis: str = "", calls: int = 1, site: Site | None = None) -> None:
        """A communicator call begins; `calls` is 0 where it waits for an operation that was counted before."""
        label, lane = self._label, self._lane  # `_computed` and `_placed`, inlined: once a message
        self.place = label, "", self.call, lane, self._axis
        self._add(COMPUTE, self._now())
        self.call = call = self.call + 1
        self.operation = operation
        self._axis = axis
        self.place = label, operation, call, lane, axis
        self.concurrent_call = None
        self._count = count = self._counts.get((axis, operation)) or self._counted(axis, operation)
        count[4] += calls
        if self._calls is not None:
            self._calls.entered(operation, call, site)

    def begin(self, operation: str, call: int, axis: str) -> None:
        """Begin a call in this lane, which was idle; `call` is its number in the program."""
        self.last = self._now()
        self.call = call
        self.operation = operation
        self._axis = axis
        self.place = self._placed(operation)
        self.concurrent_call = None
        self._count = self._counts.get((axis, operation)) or self._counted(axis, operation)

    def _counted(self, axis: str, operation: str) -> list[int]:
        """The counts of an operation that has not been called along this axis before."""
        count = self._counts[axis, operation] = [0] * len(Traffic())
        return count

    def leave(self) -> None:
        """The communicator call has ended."""
        self.operation = None
        self._axis = ""
        self.place = self._label, "", self.call, self._lane, ""
        if self._calls is not None:
            self._calls.left()

    def sent(self, nbytes: int, peer: int, posted: float) -> None:
        """A message has been sent (eager) or posted (synchronous)."""
        count = self._count
        count[0] += 1
        count[1] += nbytes
        now = self._now()
        if self._is_full and now == self.last:
            self._dropped += 1
        else:
            self._add(SEND, now, nbytes, peer, posted)

    def delivered(self, peer: int, posted: float, peer_posted: float | None) -> None:
        """The receiver has taken a synchronous message; it posted its receive at `peer_posted`."""
        self.received(0, peer, posted, peer_posted, SEND)

    def received(self, nbytes: int, peer: int, posted: float, peer_posted: float | None, kind: int = RECEIVE) -> None:
        """A message has arrived; its sender posted it at `peer_posted`. SEND: this rank sent the message."""
        if kind == RECEIVE:
            count = self._count
            count[2] += 1
            count[3] += nbytes
        now, last = self._now(), self.last
        until = last if peer_posted is None or peer_posted <= last else min(peer_posted, now)  # the end of waiting
        if self._is_full:  # only sums, inlined: simulations send millions of messages
            if until > last:
                self.seconds[WAIT] += until - last
                last = until
                self._dropped += 1
            self.seconds[kind] += now - last
            self.last = now
            self._dropped += 1
            return
        if until > last:
            self._add(WAIT, until, 0, peer, posted, peer_posted)
        self._add(kind, now, nbytes, peer, posted, peer_posted)

    def reduced(self, nbytes: int) -> None:
        """Two arrays have been combined."""
        now = self._now()
        if self._is_full and now == self.last:
            self._dropped += 1
        else:
            self._add(REDUCE, now, nbytes)

    def waited(self, peer: int = -1) -> None:
        """The rank has waited for a concurrent operation of its own, or for another rank."""
        self._add(WAIT, self._now(), 0, peer)

    def transferred(self, kind: int, nbytes: int, began: float) -> None:
        """Bytes have come from the host (RECEIVE) or gone there (SEND), over a link that was free when it began."""
        if began > self.last:
            self._add(WAIT, began, 0, HOST)
        self._add(kind, self._now(), nbytes, HOST)

    def laid_out(self, nbytes: int) -> None:
        """This rank has written `nbytes` to shared memory."""
        self._add(SEND, self._now(), nbytes)

    def took(self, nbytes: int, peer: int) -> None:
        """This rank has read `nbytes` that `peer` wrote to shared memory."""
        self._add(RECEIVE, self._now(), nbytes, peer)

    def exchanged(self, messages: int, nbytes: int) -> None:
        """A native collective of the engine has ended, with as many messages and bytes sent as received."""
        count = self._count
        count[0] += messages
        count[1] += nbytes
        count[2] += messages
        count[3] += nbytes

    @property
    def room(self) -> int:
        """How many more events are kept."""
        return (self._most_fields - len(self._fields)) // FIELDS

    def played(self, rows: Collection[Row], events: int, seconds: list[float], traffic: list[int], last: float) -> None:
        """An engine has computed a whole collective: `events` in all, of which these rows are to be kept.

        seconds   of each kind, since the program began
        traffic   messages and bytes sent, messages and bytes received
        last      when the last event ended
        """
        if rows:
            self._blocks += [RowsOfFields(self._fields), rows]
            self._most_fields -= len(self._fields) + len(rows) * FIELDS
            self._fields = []
        self._dropped += events - len(rows)
        self._is_full = self._is_full or events > len(rows)
        self.seconds, self.last = seconds, last
        self._count[:4] = [a + b for a, b in zip(self._count, traffic, strict=False)]

    def fault(self, what: str) -> None:
        """A planned fault has taken effect. Faults are kept beyond `max_events`: they are few."""
        now = self._now()
        self._fields += FAULT, now, now, 0, -1, None, None, (what, *self.place[1:])

    def _placed(self, operation: str) -> Place:
        return self._label, operation, self.call, self._lane, self._axis

    def _computed(self) -> None:
        self.place = self._placed("")
        self._add(COMPUTE, self._now())

    def _add(
        self,
        kind: int,
        end: float,
        nbytes: int = 0,
        peer: int = -1,
        posted: float | None = None,
        peer_posted: float | None = None,
    ) -> None:
        start, self.last = self.last, end
        self.seconds[kind] += end - start
        fields = self._fields
        if len(fields) < self._most_fields:
            fields += kind, start, end, nbytes, peer, posted, peer_posted, self.place
        else:
            self._is_full = True
            self._dropped += 1

    @property
    def bytes_sent(self) -> int:
        return sum(count[1] for recorder in (self, *self._lanes.values()) for count in recorder._counts.values())

    def shares(self) -> Shares:
        """Return the fractions of this rank's time so far."""
        return Shares.of(self.seconds)

    def close(self) -> Recording:
        """End the record: the program has returned or failed."""
        now = max(self._now(), self.last)  # a simulated rank may have worked ahead of the failure that ends it
        self._add(WAIT if self.operation else COMPUTE, now)
        recorders = [self, *(self._lanes[number] for number in sorted(self._lanes))]
        ledger: dict[str, dict[str, Traffic]] = {}
        for recorder in recorders:
            for (axis, operation), count in recorder._counts.items():
                of_axis = ledger.setdefault(axis, {})
                of_axis[operation] = Traffic.total([of_axis.get(operation, Traffic()), Traffic(*count)])
        return Recording(
            Rows([block for recorder in recorders for block in (*recorder._blocks, RowsOfFields(recorder._fields))]),
            sum(recorder._dropped for recorder in recorders),
            self.seconds,
            ledger,
        )
