"""One rank's end of the network on real processes: posted operations, messages that wait, and their matching.

Each pair of ranks has a stream socket. Nothing happens behind the program's back: messages move while a rank is in a
communicator call. A blocked rank sleeps in `poll` on all its sockets at once, the launcher's included, so that an abort
wakes it.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from minidl.cluster.engines import payload
from minidl.cluster.engines.frames import ACKNOWLEDGEMENT, GOODBYE, MESSAGE, Frame, FrameSocket
from minidl.cluster.engines.protocol import EAGER_BYTES, Array, Peer, Pending
from minidl.cluster.engines.segments import Segment, SegmentPool
from minidl.cluster.errors import ClusterError, CommTimeout, Deadlock, RankFailed
from minidl.cluster.network import Network

LOST_PEER_SECONDS = 2.0  # a peer's socket has closed without a goodbye: how long the launcher may take to say why


class Mailbox:
    """The endpoint of `rank` among `size` ranks; `links` holds the socket to every other rank.

    `control` is the descriptor that becomes readable when the launcher has something to say; `read_control` then
    returns the error to raise.
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
        tell: Callable[[Any], None] | None,
    ) -> None:
        self.rank = rank
        self.size = len(links) + 1
        self.network: Network | None = None
        self.timeout = timeout
        self.blocked: tuple[Pending, float] | None = None  # what this rank is blocked in, and since when
        self._origin = origin
        self._tell = tell
        self._failure: ClusterError | None = None
        self._links = {peer: FrameSocket(link) for peer, link in links.items()}
        self._peer_of = {link.fileno(): peer for peer, link in links.items()}
        self._control = control
        self._read_control = read_control
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        for descriptor in self._peer_of:
            self._poll.register(descriptor, select.POLLIN)
        self._receives: list[Pending] = []  # posted and not yet matched, in the order of posting
        self._sends: dict[
            int, tuple[Pending, Segment]
        ] = {}  # large ones, by segment, until the receiver has acknowledged
        self._sends_to_self: dict[int, Pending] = {}  # by the identity of the body
        self._arrived: dict[tuple[int, int], deque[tuple[int, Frame]]] = {}  # unmatched, by (source, tag)
        self._arrivals = 0
        self._pool = SegmentPool()
        self._mapped: dict[tuple[int, int], Segment] = {}
        self._ended: set[int] = set()  # peers that have returned from the program
        self._lost: dict[int, float] = {}  # peers whose socket has closed without a goodbye, and when

    def now(self) -> float:
        return time.perf_counter() - self._origin

    def tell(self, obj: Any) -> None:
        if self._tell is not None:
            self._tell(obj)

    # Posting

    def post_send(self, obj: Any, dst: int, tag: int, synchronous: bool = False) -> Pending:
        self._raise_failure()
        form, description, buffers, nbytes = payload.encode(obj)
        operation = Pending("send", dst, tag, self.now(), nbytes)
        operation.done = nbytes <= EAGER_BYTES
        if dst == self.rank:
            body = np.frombuffer(b"".join(buffers), np.uint8)
            self._sends_to_self[id(body)] = operation
            self._arrive(dst, Frame(MESSAGE, form, 0, tag, operation.posted, nbytes, description, body, None))
        elif operation.done:
            self._send(
                dst, MESSAGE, operation.posted, form=form, tag=tag, nbytes=nbytes, description=description, body=buffers
            )
        else:
            segment = self._pool.take(nbytes)
            offset = 0
            for buffer in buffers:
                segment.bytes[offset : offset + len(buffer)] = np.frombuffer(buffer, np.uint8)
                offset += len(buffer)
            is_new = dst not in segment.peers
            segment.peers.add(dst)
            self._sends[segment.number] = operation, segment
            self._send(
                dst,
                MESSAGE,
                operation.posted,
                form=form,
                tag=tag,
                segment=segment.number,
                nbytes=nbytes,
                description=description,
                descriptor=segment.descriptor if is_new else None,
            )
        return operation

    def post_receive(self, src: Peer, tag: int, out: Array | None = None) -> Pending:
        self._raise_failure()
        operation = Pending("receive", src, tag, self.now(), out=out)
        sources = (src,) if isinstance(src, int) else src
        waiting = [(self._arrived[source, tag][0][0], source) for source in sources if self._arrived.get((source, tag))]
        if waiting:
            _, source = min(waiting)  # the one that arrived first
            _, frame = self._arrived[source, tag].popleft()
            self._complete(operation, source, frame)
        else:
            self._receives.append(operation)
        return operation

    # Progress

    def wait(self, operation: Pending) -> None:
        if not operation.done:
            self._block_on(operation)

    def _block_on(self, operation: Pending) -> None:
        since = self.now()
        self.blocked = operation, since
        while not operation.done:
            self._raise_if_hopeless(operation)
            remaining = since + self.timeout - self.now()
            if remaining <= 0:
                raise CommTimeout(f"{operation} did not complete within {self.timeout:g} s")
            self._progress(min(remaining, LOST_PEER_SECONDS if self._lost else remaining))
        self.blocked = None

    def flush(self) -> None:
        """Say goodbye, and return when the kernel has taken everything that this rank has sent."""
        for peer in self._links:
            self._send(peer, GOODBYE, self.now())
        since = self.now()
        while unsent := [peer for peer, link in self._links.items() if link.has_outgoing and not link.closed]:
            if self.now() - since > self.timeout:
                raise CommTimeout(f"messages to rank {unsent[0]} were not received within {self.timeout:g} s")
            self._progress(self.timeout)

    def _send(self, peer: int, kind: int, posted: float, **frame: Any) -> None:
        link = self._links[peer]
        if link.closed:
            return
        link.send(kind, posted, **frame)
        if link.has_outgoing:
            self._poll.modify(link.socket.fileno(), select.POLLIN | select.POLLOUT)

    def _progress(self, seconds: float) -> None:
        """Sleep until something can be sent or received, or for that many seconds, and move what can be moved."""
        for descriptor, events in self._poll.poll(max(1, int(seconds * 1000))):
            if descriptor == self._control:
                self._failure = self._failure or self._read_control()
                self._raise_failure()
                continue
            peer = self._peer_of[descriptor]
            link = self._links[peer]
            if events & select.POLLOUT:
                link.flush()
                if not link.has_outgoing:
                    self._poll.modify(descriptor, select.POLLIN)
            if events & ~select.POLLOUT:
                for frame in link.receive():
                    self._handle(peer, frame)
                if link.closed:
                    self._poll.unregister(descriptor)
                    if peer not in self._ended:
                        self._lost[peer] = self.now()

    def _handle(self, peer: int, frame: Frame) -> None:
        if frame.kind == MESSAGE:
            if frame.descriptor is not None:
                self._map(peer, frame)
            self._arrive(peer, frame)
        elif frame.kind == ACKNOWLEDGEMENT:
            operation, segment = self._sends.pop(frame.segment)
            self._pool.give_back(segment)
            operation.peer_posted = frame.posted
            operation.done = True
        else:
            self._ended.add(peer)

    def _arrive(self, peer: int, frame: Frame) -> None:
        for operation in self._receives:
            if operation.tag == frame.tag and is_among(peer, operation.peer):
                self._receives.remove(operation)
                self._complete(operation, peer, frame)
                return
        if frame.body is not None and peer != self.rank:
            frame.body = frame.body.copy()  # it lies in the socket's buffer, which the next frames overwrite
        self._arrivals += 1
        self._arrived.setdefault((peer, frame.tag), deque()).append((self._arrivals, frame))

    def _complete(self, operation: Pending, peer: int, frame: Frame) -> None:
        if frame.segment:
            body = self._mapped[peer, frame.segment].bytes[: frame.nbytes]
        else:
            assert frame.body is not None
            body = frame.body
        operation.payload = payload.decode(frame.form, frame.description, body, operation.out)
        operation.source, operation.nbytes, operation.peer_posted = peer, frame.nbytes, frame.posted
        operation.done = True
        if frame.segment:
            self._send(peer, ACKNOWLEDGEMENT, operation.posted, segment=frame.segment)
        elif peer == self.rank:
            self._sends_to_self.pop(id(body)).done = True

    def _map(self, peer: int, frame: Frame) -> None:
        assert frame.descriptor is not None
        size = os.fstat(frame.descriptor).st_size
        self._mapped[peer, frame.segment] = Segment(frame.descriptor, size, frame.segment)
        os.close(frame.descriptor)

    # Failure

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _raise_if_hopeless(self, operation: Pending) -> None:
        peers = {operation.peer} if isinstance(operation.peer, int) else operation.peer - {self.rank}
        if peers and peers <= self._ended:
            who = f"rank {operation.peer} has" if isinstance(operation.peer, int) else "every other rank has"
            raise Deadlock(f"{operation} can never complete: {who} already returned from the program")
        if peers <= {self.rank}:
            raise Deadlock(f"{operation} can never complete: it would have to come from this rank itself")
        lost = [peer for peer in peers if self.now() - self._lost.get(peer, self.now()) > LOST_PEER_SECONDS]
        if lost and peers <= self._ended | set(self._lost):
            raise RankFailed(f"{operation} can never complete: rank {lost[0]} is gone", rank=lost[0])


def is_among(rank: int, peer: Peer) -> bool:
    return rank == peer if isinstance(peer, int) else rank in peer
