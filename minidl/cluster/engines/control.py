"""What the launcher and its ranks say to each other: frames of a kind and a body, on a stream socket for each rank."""

from __future__ import annotations

import array
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from minidl.cluster.diagnosis.errors import Wait
from minidl.cluster.engines.protocol import Terms
from minidl.cluster.trace.recording import Recording

START, BEGIN, ABORT, LOST = range(4)  # launcher to rank; LOST: another rank has failed, and the run goes on
READY, TOLD, RESULT, ERROR, LAST_WORDS = range(4, 9)  # rank to launcher; LAST_WORDS: what it recorded until it died

_HEAD = struct.Struct("<BQ")


@dataclass(frozen=True)
class Start:
    """Who a rank is. Descriptors come along: of its output, errors, task and notes, and what its engine adds."""

    rank: int
    terms: Terms  # without the listener, which stays where it is
    has_listener: bool
    kernels: str
    threads: int
    trace_events: int
    payload_bytes: int


@dataclass(frozen=True)
class Result:
    """What a rank returned (pickled), when, and what it recorded."""

    value: bytes
    seconds: float
    recording: Recording


@dataclass(frozen=True)
class Failure:
    """How a rank failed, in words; `exception` is the pickled exception itself, if it can be pickled."""

    summary: str
    kind: str  # "CommTimeout", "Deadlock" or "CollectiveMismatch"; "RankFailed" for every other exception
    operation: str | None
    call: int  # its number among this rank's calls
    call_site: str | None
    begun: str | None  # where a concurrent operation was begun, in words
    traceback: str
    exception: bytes | None
    wait: Wait | None
    recording: Recording | None
    at_fault: int | None  # the rank that has caused it, as far as this rank knows


class ControlSocket:
    """The rank's end: blocking; several threads may send."""

    def __init__(self, link: socket.socket) -> None:
        link.setblocking(True)
        self.socket = link
        self._lock = threading.Lock()

    def send(self, kind: int, body: bytes = b"") -> None:
        with self._lock:
            self.socket.sendall(_HEAD.pack(kind, len(body)))
            self.socket.sendall(body)

    def receive(self, max_descriptors: int = 0) -> tuple[int, bytes, list[int]]:
        """The next frame and the descriptors that came with it; raises EOFError when the launcher has ended."""
        head, descriptors = self._receive_exactly(_HEAD.size, max_descriptors)
        kind, nbytes = _HEAD.unpack(head)
        body, _ = self._receive_exactly(nbytes, 0)
        return kind, body, descriptors

    def _receive_exactly(self, nbytes: int, max_descriptors: int) -> tuple[bytes, list[int]]:
        data, descriptors = bytearray(), array.array("i")
        while len(data) < nbytes:
            room = socket.CMSG_SPACE(max_descriptors * 4) if max_descriptors else 0
            piece, ancillary, _, _ = self.socket.recvmsg(nbytes - len(data), room)
            if not piece:
                raise EOFError("the launcher has ended")
            data += piece
            for _, _, received in ancillary:
                descriptors.frombytes(received)
        return bytes(data), list(descriptors)


@dataclass
class FrameReader:
    """The launcher's end: bytes come in as they arrive, frames go out when they are whole."""

    _data: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        self._data += data
        while len(self._data) >= _HEAD.size:
            kind, nbytes = _HEAD.unpack_from(self._data)
            end = _HEAD.size + nbytes
            if len(self._data) < end:
                return
            body = bytes(memoryview(self._data)[_HEAD.size : end])
            del self._data[:end]
            yield kind, body


def send_frame(link: socket.socket, kind: int, body: bytes = b"", descriptors: Sequence[int] = ()) -> None:
    """Send a frame from the launcher; the descriptors travel with its first byte."""
    data = _HEAD.pack(kind, len(body)) + body
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    sent = link.sendmsg([data], rights)
    if sent < len(data):
        link.sendall(data[sent:])
