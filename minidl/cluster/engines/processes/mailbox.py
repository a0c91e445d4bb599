"""One rank's end of the network on real processes: it sends, receives, and waits for what was posted.

How a message gets from `send` on one rank to `recv` on another:

1. `post_send` writes a frame to the stream socket between the two ranks. A payload of up to 64 KiB is in the frame, and
   the send is done. A larger one is copied into a segment of shared memory that the frame names.
2. The other rank reads the frame in `_progress`, while it is in some communicator call. `Matching` finds the receive
   that takes the message, or keeps the message until such a receive is posted.
3. `_complete` writes the payload where the receive wants it, and the receive is done. For a large message it returns an
   ACKNOWLEDGEMENT: the send is done too, and its segment can be reused.

Messages move only while a rank is in a communicator call. A blocked rank sleeps in `poll` on all its sockets, the
launcher's included, so that an abort wakes it. If several threads are blocked (the program and its helpers), one of
them polls and the others wait for its notification.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from minidl.cluster.cost.network import Network
from minidl.cluster.diagnosis.errors import ClusterError, CommTimeout, RankFailed
from minidl.cluster.engines import payload
from minidl.cluster.engines.matching import Matching
from minidl.cluster.engines.processes.emulated_network import DelayQueue, EmulatedPorts
from minidl.cluster.engines.processes.frames import (
    ABANDON,
    ACKNOWLEDGEMENT,
    GOODBYE,
    MESSAGE,
    WAKE,
    Frame,
    Segment,
    SegmentPool,
)
from minidl.cluster.engines.processes.links import Links
from minidl.cluster.engines.processes.peers import Peers
from minidl.cluster.engines.processes.shared_page import Page, Waits
from minidl.cluster.engines.protocol import COLLECTIVE, EAGER_BYTES, Array, Peer, Pending
from minidl.cluster.engines.real_endpoint import RealEndpoint

SHORT_SECONDS = 0.05  # shorter waits, which most are, are not published for the search for deadlocks


class SocketMailbox(RealEndpoint):
    """Sends and receives the messages of one rank.

    links         the socket to every other rank
    control       descriptor of the launcher's socket; when readable, `read_control` returns the error to raise
    timeout       seconds that one operation may be blocked
    origin        zero of the clock, by time.perf_counter()
    page          where this rank publishes what it waits for
    lost          other ranks that have failed in a run that continues without them
    network       delays messages to this network's speed

    Methods without an underscore may be called by any thread; the others need the lock.
    """

    def __init__(
        self,
        rank: int,
        links: dict[int, socket.socket],
        *,
        control: int,
        read_control: Callable[[], ClusterError | None],
        timeout: float,
        origin: float,
        page: Page,
        lost: Mapping[int, ClusterError],
        network: Network | None = None,
    ) -> None:
        super().__init__()
        self.rank = rank
        self.size = len(links) + 1
        self.network = network
        self.timeout = timeout
        self.waits: dict[int, tuple[Pending, float]] = {}  # what each thread is blocked in, and since when
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._published = Waits(page, rank)
        self._at_work: dict[int, int] = {}  # by lane: the number of its unfinished tasks
        self._peers = Peers(rank, lost)
        self._origin = origin
        self._failure: ClusterError | None = None
        self._links = Links(links, control, self._published)
        self._read_control = read_control
        self._matching: Matching[Frame] = Matching()
        self._sends: dict[int, tuple[Pending, Segment]] = {}  # large ones, by segment, until acknowledged
        self._sends_to_self: dict[int, Pending] = {}  # by the id of the body
        self._sleeps: dict[tuple[int, int], Pending] = {}  # by (peer, tag), until that peer wakes this rank
        self._ports = EmulatedPorts(network) if network is not None else None
        self._held: DelayQueue[tuple[Pending, int, Frame]] = DelayQueue()  # matched, to be delivered later
        self._pool = SegmentPool()
        self._mapped: dict[tuple[int, int], Segment] = {}

    def now(self) -> float:
        return time.perf_counter() - self._origin

    @property
    def is_program(self) -> bool:
        """Whether the calling thread is the rank's program, not a helper."""
        return threading.get_ident() == self._program

    # Posting

    def post_send(self, obj: Any, dst: int, tag: int, synchronous: bool = False) -> Pending:
        form, description, buffers, nbytes = payload.encode(obj)
        posted = self.now()
        operation = Pending("send", dst, tag, posted, nbytes, done=nbytes <= EAGER_BYTES)
        segment = None
        if not operation.done and dst != self.rank:
            with self._lock:
                self._raise_failure(operation)
                segment = self._pool.take(nbytes)
            segment.fill(buffers)  # without the lock, because it takes long
        with self._lock:
            if self._failure is not None or self._peers.failed:
                self._raise_failure(operation)
            if dst == self.rank:
                body = np.frombuffer(b"".join(buffers), np.uint8)
                self._sends_to_self[id(body)] = operation
                self._arrive(dst, Frame(MESSAGE, form, 0, tag, posted, nbytes, description, body, None))
                return operation
            contents: dict[str, Any] = {"body": buffers}
            if segment is not None:
                descriptor = None if dst in segment.peers else segment.descriptor
                contents = {"segment": segment.number, "descriptor": descriptor}
                segment.peers.add(dst)
                self._sends[segment.number] = operation, segment
            start = posted if self._ports is None else self._ports.leave(posted, nbytes)
            contents |= {"form": form, "tag": tag, "nbytes": nbytes, "description": description, "start": start}
            self._links.send(dst, MESSAGE, posted, **contents)
        return operation

    def post_receive(self, src: Peer, tag: int, out: Array | None = None) -> Pending:
        operation = Pending("receive", src, tag, self.now(), out=out)
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if (early := self._matching.post(operation)) is not None:
                self._match(operation, *early)
        return operation

    # Waiting

    def _block_on(self, operation: Pending) -> None:
        thread = threading.get_ident()
        with self._lock:
            since = now = self.now()
            self.waits[thread] = operation, since
            try:
                while not operation.done:
                    if self._failure is not None:
                        raise self._failure
                    self._check_completable(operation)
                    seconds = since + self.timeout - now
                    if seconds <= 0:
                        raise CommTimeout(f"{operation} did not complete within {self.timeout:g} s")
                    if seconds > self.timeout - SHORT_SECONDS:
                        seconds = min(seconds, SHORT_SECONDS)
                    else:
                        self._publish_if_blocked()
                    if self._links.is_polling:
                        self._changed.wait(seconds)
                    else:
                        self._progress(seconds)
                    now = self.now()
            except ClusterError:
                self.failed_in[thread] = operation, since
                self._published.running()  # the program may catch the error and continue
                raise
            finally:
                del self.waits[thread]

    def flush(self) -> None:
        """Say goodbye, and return when the kernel has accepted everything that this rank has sent."""
        with self._lock:
            while self._held:  # their senders wait for an acknowledgement
                self._progress(self.timeout)
            for peer in self._links.to:
                self._links.send(peer, GOODBYE, self.now())
            since, before = self.now(), self._links.unsent()
            while unsent := self._links.unsent():
                if unsent != before:  # a slow receiver still receives
                    since, before = self.now(), unsent
                if self.now() - since > self.timeout:
                    raise CommTimeout(f"messages to rank {min(unsent)} were not received within {self.timeout:g} s")
                self._progress(self.timeout)

    # Sleeping until a peer wakes this rank: for ranks that share memory, which changes without a message

    def sleep(self, peer: int, tag: int, is_needless: Callable[[], bool]) -> None:
        """Return when `peer` calls `wake(this rank, tag)`, or at once if `is_needless()` once the sleep is known."""
        pending = Pending("receive", peer, tag, self.now())
        with self._lock:
            self._sleeps[peer, tag] = pending
        if not is_needless():
            self._block_on(pending)
        with self._lock:
            self._sleeps.pop((peer, tag), None)

    def wake(self, peer: int, tag: int) -> None:
        """End the sleep of `peer`; nothing happens if it is awake."""
        with self._lock:
            self._links.send(peer, WAKE, self.now(), tag=tag)

    # Progress

    def _progress(self, seconds: float) -> None:
        """Sleep until something can be sent or received, at most that many seconds; then send and receive it."""
        if self._ports is not None and self._held:
            seconds = min(seconds, self._held.next_due - self.now())
        self._links.is_polling = True
        self._lock.release()
        try:
            events = self._links.poll(seconds)
        finally:
            self._lock.acquire()
            self._links.is_polling = False
            self._published.running()
        for descriptor, event in events:
            peer = self._links.peer_of.get(descriptor)
            if peer is None:
                if descriptor == self._links.control:
                    self._failure = self._failure or self._read_control()
                else:
                    self._links.interrupted()
                continue
            if event & select.POLLOUT:
                self._links.flush(peer)
            if event & ~select.POLLOUT:
                link = self._links.to[peer]
                for frame in link.receive():
                    self._handle(peer, frame)
                if link.closed:
                    self._links.drop(peer)
                    if peer not in self._peers.ended:
                        self._peers.vanished.add(peer)
        while self._ports is not None and self._held and self._held.next_due <= self.now():
            self._complete(*self._held.pop())
        if len(self.waits) > (threading.get_ident() in self.waits):  # other threads wait: for what is done now,
            self._changed.notify_all()  # or to poll next, if this thread does not poll again

    def _publish_if_blocked(self) -> None:
        """Publish whom this rank waits for, if program and helpers are blocked and nothing here will wake one."""
        waits = [operation for operation, _ in self.waits.values()]
        if not self._is_all_blocked() or self._held or any(operation.done for operation in waits):
            return
        awaited = [self._peers.awaited(operation) for operation in waits if operation.kind != "helper"]
        if all(awaited):  # else a thread is about to raise the failure of the ranks that it waited for
            self._published.blocked(set().union(*awaited))

    def _is_all_blocked(self) -> bool:
        """Whether every thread of this rank, its program and the helpers at work, waits for something."""
        threads = 1 + sum(tasks > 0 for tasks in self._at_work.values()) if self._at_work else 1
        return self._program in self.waits and len(self.waits) == threads

    def _may_send_to_itself(self) -> bool:
        """Whether a thread of this rank runs, or waits for another rank, and may send this rank a message later."""
        waits = [operation for operation, _ in self.waits.values() if operation.kind != "helper"]
        return not self._is_all_blocked() or any(self._peers.awaited(operation) - {self.rank} for operation in waits)

    # Matching

    def _handle(self, peer: int, frame: Frame) -> None:
        if frame.kind == MESSAGE:
            if frame.descriptor is not None:
                self._mapped[peer, frame.segment] = Segment.attach(frame.descriptor, frame.segment)
            if self._ports is not None and not frame.segment:
                # A short message does not wait for its receive.
                frame.start = self._ports.arrive(frame.start, frame.nbytes)
            self._arrive(peer, frame)
        elif frame.kind == ACKNOWLEDGEMENT:
            operation, segment = self._sends.pop(frame.segment)
            self._pool.give_back(segment)
            if self._ports is not None:
                self._ports.acknowledged(self.now())
            operation.peer_posted = frame.posted
            operation.done = True
        elif frame.kind == WAKE:
            if (sleep := self._sleeps.get((peer, frame.tag))) is not None:
                sleep.done = True
        elif frame.kind == ABANDON:
            self._peers.abandoned[peer, frame.tag] = frame.segment
        else:
            self._peers.ended.add(peer)
        self._published.handled(peer)

    def _arrive(self, peer: int, frame: Frame) -> None:
        """Match a message with its receive; keep it if that has not been posted."""
        if frame.body is not None and peer != self.rank and self._ports is not None:
            frame.body = frame.body.copy()
        operation = self._matching.arrive(peer, frame.tag)
        if operation is not None:
            self._match(operation, peer, frame)
            return
        if frame.body is not None and peer != self.rank:
            frame.body = frame.body.copy()  # the next frames overwrite the socket's buffer
        self._matching.keep(peer, frame.tag, frame)

    def _match(self, operation: Pending, peer: int, frame: Frame) -> None:
        """Deliver a message to its receive: now or, on an emulated network, when the transfer has ended."""
        operation.source = peer
        if self._ports is not None and peer != self.rank:
            due = frame.start
            if frame.segment:
                due = self._ports.arrive(max(frame.start, operation.posted), frame.nbytes)
            if due > self.now():
                self._held.push(due, (operation, peer, frame))
                self._links.interrupt()
                return
        self._complete(operation, peer, frame)

    def _complete(self, operation: Pending, peer: int, frame: Frame) -> None:
        """Write the payload where the receive wants it; acknowledge a large message."""
        if frame.segment:
            body = self._mapped[peer, frame.segment].bytes[: frame.nbytes]
        else:
            assert frame.body is not None
            body = frame.body
        operation.payload = payload.decode(frame.form, frame.description, body, operation.out)
        operation.source, operation.nbytes, operation.peer_posted = peer, frame.nbytes, frame.posted
        operation.done = True
        if frame.segment:
            self._links.send(peer, ACKNOWLEDGEMENT, operation.posted, segment=frame.segment)
        elif peer == self.rank:
            self._sends_to_self.pop(id(body)).done = True
            self._links.interrupt()  # the receiver may be another thread, which no socket wakes up

    # Failure

    def _raise_failure(self, send: Pending | None = None) -> None:
        if self._failure is not None:
            raise self._failure
        if send is not None and send.peer in self._peers.failed:
            self._check_completable(send)

    def _check_completable(self, operation: Pending) -> None:
        if operation.peer in (self.rank, {self.rank}) and self._may_send_to_itself():
            return
        try:
            self._peers.check_completable(operation)
        except RankFailed as error:
            if operation.tag & COLLECTIVE:  # the peers cannot complete the collective either
                for peer in self._links.to:
                    self._links.send(peer, ABANDON, self.now(), tag=operation.tag, segment=error.rank)
            raise
