"""Frames on the stream socket between two ranks: a header of fixed size, a description, and (if short) the body.

A long body is not sent over the socket: it is in a segment, which the header names. A segment is an anonymous file that
sender and receiver map; the first frame that names it also carries its descriptor. The sender reuses its segments.
"""

from __future__ import annotations

import array
import mmap
import os
import socket
import struct
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from minidl.cluster.engines.anonymous_file import anonymous_file
from minidl.cluster.engines.payload import Bytes

# ACKNOWLEDGEMENT: the receiver has copied a segment. GOODBYE: the program of this rank has returned. WAKE: ends a sleep
# of the other rank. ABANDON: this rank has given up a collective, because the rank in `segment` failed.
MESSAGE, ACKNOWLEDGEMENT, GOODBYE, WAKE, ABANDON = range(5)

# kind, form, whether a descriptor follows, segment (0: the body follows), bytes of the description, bytes of the body,
# tag, time of posting, and when the transfer starts on an emulated network
HEADER = struct.Struct("<BBBxIIxxxxQQdd")
BUFFER_BYTES = 1 << 18
ROOM_FOR_DESCRIPTORS = socket.CMSG_SPACE(4 * 8)


@dataclass(slots=True)
class Frame:
    """A frame as it was received; the fields are those of HEADER, with the contents."""

    kind: int
    form: int
    segment: int
    tag: int
    posted: float
    nbytes: int
    description: bytes
    body: Bytes | None  # in the socket's buffer, valid until the next frame is read; None if in a segment
    descriptor: int | None
    start: float = 0.0


class FrameSocket:
    """A nonblocking stream socket that sends and receives whole frames.

    What the kernel does not accept at once is copied and kept until `flush` sends it. `receive` yields complete frames.
    """

    def __init__(self, link: socket.socket) -> None:
        link.setblocking(False)
        self.socket = link
        self.closed = False
        self.outgoing: deque[tuple[memoryview, int | None]] = deque()  # what the kernel has not accepted yet
        self._descriptors: deque[int] = deque()
        self._buffer = memoryview(bytearray())
        self._start = self._end = 0

    def send(
        self,
        kind: int,
        posted: float,
        *,
        form: int = 0,
        tag: int = 0,
        segment: int = 0,
        nbytes: int = 0,
        description: bytes = b"",
        body: Sequence[Any] = (),
        descriptor: int | None = None,
        start: float = 0.0,
    ) -> None:
        head = HEADER.pack(kind, form, descriptor is not None, segment, len(description), nbytes, tag, posted, start)
        if self.outgoing:
            self._keep(b"".join((head, description, *body)), descriptor)
            return
        total = HEADER.size + len(description) + (0 if segment else nbytes)
        if len(body) > 8:
            body = (b"".join(body),)
        sent = self._send_some((head, description, *body), descriptor)
        if sent < total:
            self._keep(memoryview(b"".join((head, description, *body)))[sent:], None if sent else descriptor)

    def _keep(self, data: bytes | memoryview, descriptor: int | None) -> None:
        self.outgoing.append((memoryview(data), descriptor))

    def _send_some(self, buffers: Sequence[Any], descriptor: int | None) -> int:
        try:
            if descriptor is None:
                return self.socket.sendmsg(buffers)
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))
            return self.socket.sendmsg(buffers, [rights])
        except BlockingIOError:
            return 0
        except (BrokenPipeError, ConnectionResetError):
            # The peer has ended. What it did not receive is lost, as under MPI; a rank that waits for its answer fails.
            self.closed = True
            return sum(len(buffer) for buffer in buffers)

    def flush(self) -> None:
        """Send what is kept, until the kernel accepts no more."""
        while self.outgoing:
            data, descriptor = self.outgoing[0]
            sent = self._send_some((data,), descriptor)
            if sent == 0:
                return
            if sent == len(data):
                self.outgoing.popleft()
            else:
                self.outgoing[0] = (data[sent:], None)

    def receive(self) -> Iterator[Frame]:
        """Read what has arrived; sets `closed` once the peer has ended and all that it sent has been read."""
        while True:
            if len(self._buffer) - self._end < BUFFER_BYTES // 2:
                self._make_room()
            try:
                count, ancillary, _, _ = self.socket.recvmsg_into([self._buffer[self._end :]], ROOM_FOR_DESCRIPTORS)
            except BlockingIOError:
                return
            except ConnectionResetError:
                count, ancillary = 0, []
            if count == 0:
                self.closed = True
                return
            for level, kind, data in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    self._descriptors.extend(array.array("i", data[: len(data) - len(data) % 4]))
            room = len(self._buffer) - self._end
            self._end += count
            while self._end - self._start >= HEADER.size:
                header = HEADER.unpack_from(self._buffer, self._start)
                kind, form, has_descriptor, segment, described, nbytes, tag, posted, start = header
                description_start = self._start + HEADER.size
                body_start = description_start + described
                body_end = body_start + (0 if segment else nbytes)
                if body_end > self._end:
                    break
                description = self._buffer[description_start:body_start].tobytes()
                body = None if segment else np.frombuffer(self._buffer[body_start:body_end], np.uint8)
                descriptor = self._descriptors.popleft() if has_descriptor else None
                self._start = body_end
                if self._start == self._end:
                    self._start = self._end = 0
                yield Frame(kind, form, segment, tag, posted, nbytes, description, body, descriptor, start)
            if count < room:
                return

    def _make_room(self) -> None:
        pending = self._buffer[self._start : self._end]
        size = BUFFER_BYTES if len(pending) <= BUFFER_BYTES // 2 else 2 * len(pending) + BUFFER_BYTES
        fresh = memoryview(bytearray(size))
        fresh[: len(pending)] = pending
        self._buffer, self._start, self._end = fresh, 0, len(pending)


SMALLEST = 1 << 17  # bytes


class Segment:
    """Shared memory as an array of bytes, `segment.bytes`.

    number      identifies it among the segments of its owner
    descriptor  of its file; another process passes a copy of it to `attach`
    peers       the ranks that have received the descriptor
    """

    __slots__ = ("bytes", "descriptor", "number", "peers")

    def __init__(self, descriptor: int, nbytes: int, number: int) -> None:
        self.descriptor = descriptor
        self.number = number
        self.peers: set[int] = set()
        self.bytes: npt.NDArray[np.uint8] = np.frombuffer(mmap.mmap(descriptor, nbytes), np.uint8)

    @classmethod
    def create(cls, nbytes: int, number: int) -> Segment:
        return cls(anonymous_file("minidl", nbytes), nbytes, number)

    @classmethod
    def attach(cls, descriptor: int, number: int) -> Segment:
        """Map a peer's segment; closes the descriptor, which the mapping no longer needs."""
        segment = cls(descriptor, os.fstat(descriptor).st_size, number)
        os.close(descriptor)
        return segment

    def fill(self, buffers: Sequence[Any]) -> None:
        """Copy the buffers into the segment, one after the other."""
        offset = 0
        for buffer in buffers:
            self.bytes[offset : offset + len(buffer)] = np.frombuffer(buffer, np.uint8)
            offset += len(buffer)


class SegmentPool:
    """The segments that a rank sends from; each serves one message and is given back once the receiver has copied it.

    Sizes are powers of two. The pool holds at most about twice as many segments of a size as were in flight at once.
    """

    def __init__(self) -> None:
        self._free: list[Segment] = []
        self._created = 0

    def take(self, nbytes: int) -> Segment:
        """Return the smallest free segment of at least `nbytes` bytes, or a new one."""
        fitting = [segment for segment in self._free if segment.bytes.size >= nbytes]
        if fitting:
            best = min(fitting, key=lambda segment: segment.bytes.size)
            self._free.remove(best)
            return best
        size = max(SMALLEST, 1 << (nbytes - 1).bit_length())
        self._created += 1
        return Segment.create(size, self._created)

    def give_back(self, segment: Segment) -> None:
        """Return a segment to the pool: its message has been copied."""
        self._free.append(segment)
