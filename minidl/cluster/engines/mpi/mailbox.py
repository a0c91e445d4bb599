"""One rank's messages under MPI: every one begins with a header of our own, and `matching.py` says what receives it.

MPI's tags are too small for ours (64 bits), and MPI cannot receive from "any of these ranks". So a message of up to
64 KiB is one MPI message, header and body; a larger one is announced by a header, its body follows when the receiver
has matched it, and an acknowledgement tells the sender. Only MPI's immediate calls are used: a rank that waits looks
again and again, with pauses, so that it hears of a failure and of the time that has passed.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from minidl.cluster.diagnosis.errors import ClusterError, CommTimeout, Deadlock, RankFailed
from minidl.cluster.engines import payload
from minidl.cluster.engines.os_process.matching import Matching
from minidl.cluster.engines.protocol import EAGER_BYTES, Array, Peer, Pending

HEADERS, BODIES = 0, 1  # MPI's tags: of all headers; from here on, those of the bodies that were announced

QUICK_LOOKS = 200  # looks after which a waiting rank only lets others have the core; then pauses that grow
SHORTEST_PAUSE, LONGEST_PAUSE = 20e-6, 1e-3
NEWS_SECONDS = 1.0  # from an error of MPI until it is known that another rank has died, if that is the reason

WHOLE, ANNOUNCEMENT, ACKNOWLEDGEMENT, NOTE, GOODBYE = range(5)


class Header(NamedTuple):
    """What stands before every message; a description of so many bytes follows, then the body if the kind is WHOLE."""

    kind: int
    posted: float
    form: int = 0
    tag: int = 0
    number: int = 0  # of an announced message, among those of its sender
    nbytes: int = 0  # of the body
    description: int = 0


_HEADER = struct.Struct("<BdBQQQI")


@dataclass(slots=True)
class Message:
    """A message that has arrived, or that was announced: then its body is still at the sender."""

    header: Header
    description: bytes
    body: npt.NDArray[np.uint8]
    send: Pending | None = None  # what waits for a message of this rank to itself


class MPICalls:
    """A lock around calls of MPI. An error of MPI's leaves the block as a ClusterError.

    MPI notices a death in its own way: to read from the memory of a process that has been killed fails. Then `news`,
    which hears of the death as well, says which rank it was. MPI's own exceptions stay in this process: to unpickle one
    would initialize MPI in the launcher.
    """

    def __init__(self, news: Callable[[], ClusterError | None]) -> None:
        self._news = news
        self._lock = threading.RLock()  # held for moments: no call of MPI made under it waits for another rank

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
            time.sleep(LONGEST_PAUSE)
        return news or RankFailed(f"MPI has failed, and no other rank has died: {str(error).strip()}")


class MPIMailbox:
    """The messages of this process in `comm`, which nobody else uses.

    `news` returns the error to raise when the run is over, else None; it is asked whenever the mailbox looks for
    messages.
    """

    def __init__(self, comm: MPI.Intracomm, timeout: float, news: Callable[[], ClusterError | None]) -> None:
        self.rank = comm.rank
        self.size = comm.size
        self.timeout = timeout
        self.failed_in: dict[int, tuple[Pending, float]] = {}  # where each thread last raised an error, since when
        self._comm = comm
        self._news = news
        self._failure: ClusterError | None = None
        self._mpi = MPICalls(news)
        self._status = MPI.Status()
        self._matching: Matching[Message] = Matching()
        self._sends: dict[int, Pending] = {}  # announced, by number, until the receiver has acknowledged
        self._number = 0
        self._body_tags = highest_tag(comm) - BODIES
        self._requests: list[tuple[MPI.Request, Any]] = []  # under way, with the memory that MPI reads or writes
        self._bodies: list[tuple[MPI.Request, Pending, int, Message]] = []  # on their way here
        self._ended: set[int] = set()  # peers that have returned from the program
        self._origin = time.perf_counter()

    def begin(self, origin: float) -> None:
        """The program begins on all ranks: `time.perf_counter()` of that moment is zero of the clock."""
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
                self._arrive(dst, Message(header, description, np.frombuffer(body, np.uint8), pending))
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
        """Send something that `_read_note` of the other side shall have, whatever its program receives."""
        form, description, buffers, nbytes = payload.encode(note)
        header = Header(NOTE, self.now(), form, 0, 0, nbytes, len(description))
        self._post(dst, header, description, b"".join(buffers))

    def _post(self, dst: int, header: Header, description: bytes = b"", body: bytes = b"") -> None:
        data = _HEADER.pack(*header) + description + body
        self._requests.append((self._comm.Isend([data, MPI.BYTE], dst, HEADERS), data))

    def _body_tag(self, number: int) -> int:
        return BODIES + number % self._body_tags

    # Progress

    def wait(self, pending: Pending) -> None:
        since = self.now()
        try:
            if not pending.done:
                self.look_until(lambda: pending.done, pending, lambda: self._raise_if_hopeless(pending))
        except ClusterError:
            self.failed_in[threading.get_ident()] = pending, since
            raise
        if type(pending.payload) is payload.Refusal:
            raise pending.payload.error

    def is_done(self, pending: Pending) -> bool:
        self.progress()
        return pending.done

    def is_hopeless(self, pending: Pending) -> bool:
        if pending.done or pending.peer in (self.rank, frozenset((self.rank,))):
            return False  # of its own messages, this rank may yet send one
        try:
            self._raise_if_hopeless(pending)
        except ClusterError:
            return True
        return False

    def look_until(
        self, is_done: Callable[[], bool], what: object, raise_if_hopeless: Callable[[], None] = lambda: None
    ) -> None:
        """Make progress until `what` is done; raises when a failure, `raise_if_hopeless` or the timeout forbids it."""
        since, looks, pause = self.now(), 0, SHORTEST_PAUSE
        while True:
            self.progress()
            if is_done():
                return
            raise_if_hopeless()
            if self.now() - since > self.timeout:
                raise CommTimeout(f"{what} did not complete within {self.timeout:g} s")
            looks += 1
            if looks < QUICK_LOOKS:
                time.sleep(0)
            else:
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def progress(self) -> None:
        """Move what can be moved, without waiting."""
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

    def _handle(self, source: int, data: bytearray) -> None:
        header = Header._make(_HEADER.unpack_from(data))
        end = _HEADER.size + header.description
        description, body = bytes(data[_HEADER.size : end]), np.frombuffer(data, np.uint8)[end:]
        if header.kind in (WHOLE, ANNOUNCEMENT):
            self._arrive(source, Message(header, description, body))
        elif header.kind == ACKNOWLEDGEMENT:
            pending = self._sends.pop(header.number)
            pending.peer_posted = header.posted
            pending.done = True
        elif header.kind == NOTE:
            self._read_note(source, payload.decode(header.form, description, body, None))
        else:
            self._hear_farewell(source, description)
            self._ended.add(source)

    def _read_note(self, source: int, note: Any) -> None:
        """What a note means is known to the endpoint that is made of this mailbox."""
        raise NotImplementedError(f"{type(self).__name__} posts notes, but has no _read_note that says what they mean")

    def _farewell(self) -> bytes:
        """What the others hear when the program of this rank has returned."""
        return b""

    def _hear_farewell(self, source: int, farewell: bytes) -> None:
        """The program of that rank has returned."""

    def _arrive(self, source: int, message: Message) -> None:
        pending = self._matching.arrive(source, message.header.tag)
        if pending is not None:
            self._match(pending, source, message)
        else:
            self._matching.keep(source, message.header.tag, message)

    def _match(self, pending: Pending, source: int, message: Message) -> None:
        if message.header.kind == WHOLE:
            self._complete(pending, source, message)
        else:
            message.body = np.empty(message.header.nbytes, np.uint8)
            request = self._comm.Irecv([message.body, MPI.BYTE], source, self._body_tag(message.header.number))
            self._bodies.append((request, pending, source, message))

    def _complete(self, pending: Pending, source: int, message: Message) -> None:
        header = message.header
        pending.payload = payload.deliver(header.form, message.description, message.body, pending.out)
        pending.source, pending.nbytes, pending.peer_posted = source, header.nbytes, header.posted
        pending.done = True
        if message.send is not None:
            message.send.peer_posted = pending.posted
            message.send.done = True

    # The end, and failure

    def flush(self) -> None:
        """The program has returned: say goodbye to the others. What they still want from here needs more `progress`."""
        with self._mpi:
            farewell = self._farewell()
            for peer in range(self.size):
                if peer != self.rank:
                    self._post(peer, Header(GOODBYE, self.now(), description=len(farewell)), farewell)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _raise_if_hopeless(self, pending: Pending) -> None:
        asked = {pending.peer} if isinstance(pending.peer, int) else pending.peer
        if self.rank in asked and self._has_help():
            return  # what goes on beside the program may yet send it
        peers = asked - {self.rank}
        # In this order: what a rank has sent arrives before its farewell, perhaps while a helper looks.
        if not peers <= self._ended or pending.done or self._is_arriving(pending):
            return
        if not peers:
            raise Deadlock(f"{pending} can never complete: it would have to come from this rank itself", rank=self.rank)
        who = f"rank {pending.peer} has" if isinstance(pending.peer, int) else "every other rank has"
        at_fault = min(peers) if len(peers) == 1 else None
        raise Deadlock(f"{pending} can never complete: {who} already returned from the program", rank=at_fault)

    def _has_help(self) -> bool:
        """Whether another thread of this rank may send something."""
        return False

    def _is_arriving(self, pending: Pending) -> bool:
        with self._mpi:
            return pending.done or any(entry[1] is pending for entry in self._bodies)


def highest_tag(comm: MPI.Intracomm) -> int:
    """The highest tag that MPI takes; at least 32767."""
    tag = comm.Get_attr(MPI.TAG_UB)
    assert isinstance(tag, int)
    return tag
