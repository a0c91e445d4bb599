"""One rank's end of the network under MPI: every message begins with a header of our own, and is matched here.

How a message gets from `send` on one rank to `recv` on another:

1. `post_send` sends up to 64 KiB as one MPI message (WHOLE: header and body), and the send is done. For a larger
   payload it sends only the header (ANNOUNCEMENT) and starts to send the body with a tag of its own.
2. `progress` on the other rank reads the header, and `Matching` finds the receive that takes the message, or keeps the
   message until such a receive is posted.
3. A WHOLE message completes the receive. For an announced one the receiver starts to receive the body; when it has
   arrived, the receive is done, and an ACKNOWLEDGEMENT completes the send.

The headers are needed because MPI's tags are smaller than ours (64 bits), and because MPI cannot receive from "any of
these ranks". Only MPI's nonblocking calls are used. A rank that waits polls, with pauses, and so notices a failure of
the run and the timeout.
"""

from __future__ import annotations

import struct
import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from minidl.cluster.diagnosis.errors import ClusterError, CommTimeout, RankFailed, awaits_itself, peers_have_returned
from minidl.cluster.engines import payload
from minidl.cluster.engines.matching import Matching
from minidl.cluster.engines.protocol import EAGER_BYTES, Array, Peer, Pending
from minidl.cluster.engines.real_endpoint import RealEndpoint

NEWS_SECONDS = 1.0  # how long after an error of MPI the death of another rank may become known as its cause
LOOK_SECONDS = 1e-3


class MPICalls:
    """A lock around calls of MPI, as a context; an MPI.Exception inside leaves it as a ClusterError.

    When a rank has been killed, MPI's calls on the others fail too. `news` then says which rank it was. MPI's own
    exceptions must not reach the launcher, because unpickling one there would initialize MPI.
    """

    def __init__(self, news: Callable[[], ClusterError | None]) -> None:
        self._news = news
        self._lock = threading.RLock()  # held briefly: no call under it waits for another rank

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, _: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            if isinstance(error, MPI.Exception):
                raise self._reason(error) from None
        finally:
            self._lock.release()

    def _reason(self, error: MPI.Exception) -> ClusterError:
        end = time.monotonic() + NEWS_SECONDS
        while (news := self._news()) is None and time.monotonic() < end:
            time.sleep(LOOK_SECONDS)
        return news or RankFailed(f"MPI has failed, and no other rank has died: {str(error).strip()}")


def highest_tag(comm: MPI.Intracomm) -> int:
    """The highest tag that this MPI accepts; at least 32767."""
    tag = comm.Get_attr(MPI.TAG_UB)
    assert isinstance(tag, int)
    return tag


HEADERS, BODIES = 0, 1  # MPI's tags: of every header; the first of those for announced bodies

QUICK_LOOKS = 200  # after this number of looks, a waiting rank pauses; before, it only yields its core
SHORTEST_PAUSE, LONGEST_PAUSE = 20e-6, 1e-3  # seconds; each pause is twice as long as the last, up to the longest

WHOLE, ANNOUNCEMENT, ACKNOWLEDGEMENT, NOTE, GOODBYE = range(5)


class Header(NamedTuple):
    """The beginning of every message; then follow the description and, if the kind is WHOLE, the body.

    posted       when the sender posted it, in seconds
    form         of the payload (see `payload.py`)
    tag          of the message
    number       of an announced message, among those of its sender
    nbytes       of the body
    description  bytes of the description
    """

    kind: int
    posted: float
    form: int = 0
    tag: int = 0
    number: int = 0
    nbytes: int = 0
    description: int = 0


_HEADER = struct.Struct("<BdBQQQI")


@dataclass(slots=True)
class IncomingMessage:
    """A message that has arrived, or that has been announced while its body is still on the sender."""

    header: Header
    description: bytes
    body: npt.NDArray[np.uint8]
    send: Pending | None = None  # the send, if this rank sent the message to itself


class MPIMailbox(RealEndpoint):
    """Sends and receives this process's messages in `comm`, which nothing else uses.

    timeout  seconds that one operation may be blocked
    news     called at each look for messages; returns the error to raise when the run is over, else None
    """

    def __init__(self, comm: MPI.Intracomm, timeout: float, news: Callable[[], ClusterError | None]) -> None:
        super().__init__()
        self.rank = comm.rank
        self.size = comm.size
        self.timeout = timeout
        self._comm = comm
        self._news = news
        self._failure: ClusterError | None = None
        self._mpi = MPICalls(news)
        self._status = MPI.Status()
        self._matching: Matching[IncomingMessage] = Matching()
        self._sends: dict[int, Pending] = {}  # announced ones, by number, until they are acknowledged
        self._number = 0
        self._body_tags = highest_tag(comm) - BODIES
        self._requests: list[tuple[MPI.Request, Any]] = []  # unfinished, with the memory that MPI reads or writes
        self._bodies: list[tuple[MPI.Request, Pending, int, IncomingMessage]] = []  # being received
        self._ended: set[int] = set()  # peers that have returned from the program
        self._origin = time.perf_counter()

    def begin(self, origin: float) -> None:
        """Set zero of the clock to `origin` (by `time.perf_counter()`), when the program begins on all ranks."""
        self._origin = origin

    def now(self) -> float:
        return time.perf_counter() - self._origin

    # Posting

    def post_send(self, obj: Any, dst: int, tag: int, synchronous: bool = False) -> Pending:
        with self._mpi:
            self._raise_failure()
            form, description, buffers, nbytes = payload.encode(obj)
            pending = Pending("send", dst, tag, self.now(), nbytes, done=nbytes <= EAGER_BYTES)
            header = Header(WHOLE, pending.posted, form, tag, 0, nbytes, len(description))
            body = b"".join(buffers)
            if dst == self.rank:
                self._arrive(dst, IncomingMessage(header, description, np.frombuffer(body, np.uint8), pending))
            elif pending.done:
                self._post(dst, header, description, body)
            else:
                self._number += 1
                self._sends[self._number] = pending
                self._post(dst, header._replace(kind=ANNOUNCEMENT, number=self._number), description)
                self._requests.append((self._comm.Isend([body, MPI.BYTE], dst, self._body_tag(self._number)), body))
            return pending

    def post_receive(self, src: Peer, tag: int, out: Array | None = None) -> Pending:
        with self._mpi:
            self._raise_failure()
            pending = Pending("receive", src, tag, self.now(), out=out)
            if (early := self._matching.post(pending)) is not None:
                self._match(pending, *early)
            return pending

    def _post_note(self, dst: int, note: Any) -> None:
        """Send a note to the other rank's `_read_note`; no receive of its program gets it."""
        form, description, buffers, nbytes = payload.encode(note)
        header = Header(NOTE, self.now(), form, 0, 0, nbytes, len(description))
        self._post(dst, header, description, b"".join(buffers))

    def _post(self, dst: int, header: Header, description: bytes = b"", body: bytes = b"") -> None:
        data = _HEADER.pack(*header) + description + body
        self._requests.append((self._comm.Isend([data, MPI.BYTE], dst, HEADERS), data))

    def _body_tag(self, number: int) -> int:
        return BODIES + number % self._body_tags

    # Progress

    def _block_on(self, pending: Pending) -> None:
        since = self.now()
        try:
            self.look_until(lambda: pending.done, pending, lambda: self._check_completable(pending))
        except ClusterError:
            self.failed_in[threading.get_ident()] = pending, since
            raise

    def is_done(self, pending: Pending) -> bool:
        self.progress()
        return pending.done

    def cannot_complete(self, pending: Pending) -> bool:
        if pending.done or pending.peer in (self.rank, frozenset((self.rank,))):
            return False  # this rank may still send the message itself
        try:
            self._check_completable(pending)
        except ClusterError:
            return True
        return False

    def look_until(
        self, is_done: Callable[[], bool], what: object, check_completable: Callable[[], None] = lambda: None
    ) -> None:
        """Make progress until `is_done`; raises a failure of the run, what `check_completable` raises, or CommTimeout.

        what: named in the CommTimeout.
        """
        since, looks, pause = self.now(), 0, SHORTEST_PAUSE
        while True:
            self.progress()
            if is_done():
                return
            check_completable()
            if self.now() - since > self.timeout:
                raise CommTimeout(f"{what} did not complete within {self.timeout:g} s")
            looks += 1
            if looks < QUICK_LOOKS:
                time.sleep(0)
            else:
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def progress(self) -> None:
        """Send and receive what can be sent and received now, without waiting."""
        with self._mpi:
            self._failure = self._failure or self._news()
            self._raise_failure()
            status = self._status
            while (found := self._comm.Improbe(MPI.ANY_SOURCE, HEADERS, status)) is not None:
                source, data = status.Get_source(), bytearray(status.Get_count(MPI.BYTE))
                found.Recv([data, MPI.BYTE])
                self._handle(source, data)
            if self._requests:
                self._requests = [(request, memory) for request, memory in self._requests if not request.Test()]
            for entry in [entry for entry in self._bodies if entry[0].Test()]:
                self._bodies.remove(entry)
                _, pending, source, message = entry
                self._complete(pending, source, message)
                self._post(source, Header(ACKNOWLEDGEMENT, pending.posted, number=message.header.number))

    def start_request(self, call: Callable[[], MPI.Request], memory: Any) -> MPI.Request:
        """Make a nonblocking call of MPI that reads or writes `memory`; `progress` completes it.

        A completed request equals MPI.REQUEST_NULL.
        """
        with self._mpi:
            self._raise_failure()
            request = call()
            self._requests.append((request, memory))
            return request

    def has_returned(self, rank: int) -> bool:
        """Whether this rank knows that the program of that rank has returned."""
        return rank in self._ended

    def _handle(self, source: int, data: bytearray) -> None:
        header = Header._make(_HEADER.unpack_from(data))
        end = _HEADER.size + header.description
        description, body = bytes(data[_HEADER.size : end]), np.frombuffer(data, np.uint8)[end:]
        if header.kind in (WHOLE, ANNOUNCEMENT):
            self._arrive(source, IncomingMessage(header, description, body))
        elif header.kind == ACKNOWLEDGEMENT:
            pending = self._sends.pop(header.number)
            pending.peer_posted = header.posted
            pending.done = True
        elif header.kind == NOTE:
            self._read_note(source, payload.decode(header.form, description, body, None))
        else:
            self._receive_farewell(source, description)
            self._ended.add(source)

    @abstractmethod
    def _read_note(self, source: int, note: Any) -> None:
        """Handle a note of another rank."""

    @abstractmethod
    def _farewell(self) -> bytes:
        """The contents of the goodbye that this rank sends when its program has returned."""

    @abstractmethod
    def _receive_farewell(self, source: int, farewell: bytes) -> None:
        """The program of rank `source` has returned."""

    def _arrive(self, source: int, message: IncomingMessage) -> None:
        """Match a message with its receive; keep it if that has not been posted."""
        pending = self._matching.arrive(source, message.header.tag)
        if pending is not None:
            self._match(pending, source, message)
        else:
            self._matching.keep(source, message.header.tag, message)

    def _match(self, pending: Pending, source: int, message: IncomingMessage) -> None:
        """Complete the receive of a whole message; for an announced one, start to receive its body."""
        if message.header.kind == WHOLE:
            self._complete(pending, source, message)
        else:
            message.body = np.empty(message.header.nbytes, np.uint8)
            request = self._comm.Irecv([message.body, MPI.BYTE], source, self._body_tag(message.header.number))
            self._bodies.append((request, pending, source, message))

    def _complete(self, pending: Pending, source: int, message: IncomingMessage) -> None:
        """Write the payload where the receive wants it."""
        header = message.header
        pending.payload = payload.decode(header.form, message.description, message.body, pending.out)
        pending.source, pending.nbytes, pending.peer_posted = source, header.nbytes, header.posted
        pending.done = True
        if message.send is not None:
            message.send.peer_posted = pending.posted
            message.send.done = True

    # The end, and failure

    def flush(self) -> None:
        """The program has returned: say goodbye. Messages that other ranks still want need further `progress` here."""
        with self._mpi:
            farewell = self._farewell()
            for peer in range(self.size):
                if peer != self.rank:
                    self._post(peer, Header(GOODBYE, self.now(), description=len(farewell)), farewell)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _check_completable(self, pending: Pending) -> None:
        asked = {pending.peer} if isinstance(pending.peer, int) else pending.peer
        if self.rank in asked and not all(task.done for task in self._unwaited):
            return  # a helper thread may still send it
        peers = asked - {self.rank}
        # In this order: a rank's messages arrive before its goodbye, and a helper thread may receive them meanwhile.
        if not peers <= self._ended or pending.done or self._is_arriving(pending):
            return
        if not peers:
            raise awaits_itself(pending, self.rank)
        raise peers_have_returned(pending, peers)

    def _is_arriving(self, pending: Pending) -> bool:
        with self._mpi:
            return pending.done or any(entry[1] is pending for entry in self._bodies)
