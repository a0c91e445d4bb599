"""The messages between the launcher and a rank: frames of a kind and a body, on one stream socket for each rank.

    launcher                       rank
    START  (RankStart) ------>     prepares its process
              <------ READY
    BEGIN  (time of zero) --->     runs the program
              <------ TELL         an object for the listener of `launch`
              <------ RESULT (ProgramResult) or ERROR (Failure)

In addition, ABORT carries the error that ends the run on the rank. LOST reports another rank's failure in a run that
continues without it. LAST_WORDS brings what a rank has recorded before a planned fault kills it.
"""

from __future__ import annotations

import array
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from minidl.cluster.diagnosis.errors import Wait
from minidl.cluster.engines.protocol import LaunchTerms
from minidl.cluster.trace.recording import Recording

START, BEGIN, ABORT, LOST = range(4)  # launcher to rank
READY, TELL, RESULT, ERROR, LAST_WORDS = range(4, 9)  # rank to launcher

_HEAD = struct.Struct("<BQ")


@dataclass(frozen=True)
class RankStart:
    """Which rank a process becomes, and under which settings.

    The frame carries descriptors: of its output, its errors, the task and its notes, then those of the engine.

    terms          without the listener, which stays in the launcher
    kernels        the kernels to use, by name
    threads        of BLAS and numba
    trace_events   how many events the rank keeps
    payload_bytes  size of the task
    """

    rank: int
    terms: LaunchTerms
    has_listener: bool
    kernels: str
    threads: int
    trace_events: int
    payload_bytes: int


@dataclass(frozen=True)
class ProgramResult:
    """What the program returned on a rank (pickled), when (in seconds), and what the rank recorded."""

    value: bytes
    seconds: float
    recording: Recording


@dataclass(frozen=True)
class Failure:
    """How the program failed on a rank.

    summary    the error in a line
    kind       "CommTimeout", "Deadlock" or "CollectiveMismatch"; "RankFailed" for every other exception
    operation  the communicator call that raised it; None outside of such calls
    call       number of that call among the rank's calls
    call_site  its place in the program
    begun_at   text that says where a concurrent operation was begun
    exception  the pickled exception; None if it cannot be pickled
    wait       what the rank was waiting for
    at_fault   the rank that caused the failure, to this rank's knowledge
    """

    summary: str
    kind: str
    operation: str | None
    call: int
    call_site: str | None
    begun_at: str | None
    traceback: str
    exception: bytes | None
    wait: Wait | None
    recording: Recording | None
    at_fault: int | None

    @property
    def is_unexplained(self) -> bool:
        """Whether the connection to other ranks failed, and the rank does not know why."""
        return self.kind == "RankFailed" and self.at_fault is None


class ControlSocket:
    """The rank's end of the socket: it blocks; several threads may send."""

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
            received, ancillary, _, _ = self.socket.recvmsg(nbytes - len(data), room)
            if not received:
                raise EOFError("the launcher has ended")
            data += received
            for _, _, rights in ancillary:
                descriptors.frombytes(rights)
        return bytes(data), list(descriptors)


@dataclass
class FrameReader:
    """The launcher's end of the socket: collects the bytes that arrive, and yields every complete frame."""

    _data: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Add bytes that have arrived; yield the kind and the body of each frame that is now complete."""
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
