"""The links of one rank: its sockets to all others, and the poll in which it sleeps on all of them at once."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from typing import Any

from minidl.cluster.engines.processes.frames import FrameSocket
from minidl.cluster.engines.processes.shared_page import Waits


class SelfPipe:
    """The self-pipe trick: a socket to itself in the poll set `poll`, by which one thread ends the poll of another."""

    def __init__(self, poll: select.poll) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        poll.register(self._reader, select.POLLIN)

    def notify(self) -> None:
        """Make the current poll return, or the next one."""
        with contextlib.suppress(BlockingIOError):  # the pipe is full, so the poll returns anyway
            self._writer.send(b"!")

    def drain(self) -> None:
        """The poll has returned: empty the pipe, so that the next poll sleeps."""
        with contextlib.suppress(BlockingIOError):
            while self._reader.recv(4096):
                pass


class Links:
    """Sends frames to the other ranks, and waits for frames from them and for the launcher.

    sockets  to every other rank
    control  descriptor of the launcher's socket
    waits    counts the frames that are sent
    to       the socket to each other rank, as frames; `to[peer].receive()` yields those that have arrived

    Every call except `poll` needs the mailbox's lock.
    """

    def __init__(self, sockets: dict[int, socket.socket], control: int, waits: Waits) -> None:
        self.to = {peer: FrameSocket(link) for peer, link in sockets.items()}
        self._waits = waits
        self._poll = select.poll()
        self._self_pipe: SelfPipe | None = None
        self.control = control
        self.peer_of = {link.fileno(): peer for peer, link in sockets.items()}  # by descriptor
        self.is_polling = False  # whether a thread is in `poll`
        for descriptor in (control, *self.peer_of):
            self._poll.register(descriptor, select.POLLIN)

    def share(self) -> None:
        """Make `interrupt` work, because several threads use the links from now on."""
        self._self_pipe = self._self_pipe or SelfPipe(self._poll)

    # Sending

    def send(self, peer: int, kind: int, posted: float, **frame: Any) -> None:
        """Send a frame, now or as soon as the socket accepts it; nothing happens if the peer has ended."""
        link = self.to[peer]
        if link.closed:
            return
        self._waits.sent(peer)
        link.send(kind, posted, **frame)
        if link.outgoing:
            self._poll.modify(link.socket.fileno(), select.POLLIN | select.POLLOUT)
            self.interrupt()

    def flush(self, peer: int) -> None:
        """Send what the socket to the peer accepts now."""
        link = self.to[peer]
        link.flush()
        if not link.outgoing:
            self._poll.modify(link.socket.fileno(), select.POLLIN)

    def unsent(self) -> dict[int, int]:
        """How many frames have not been sent yet, by peer; peers to which all have been sent are left out."""
        return {peer: len(link.outgoing) for peer, link in self.to.items() if link.outgoing and not link.closed}

    # Receiving

    def poll(self, seconds: float) -> list[tuple[int, int]]:
        """Sleep until something can be sent or received, at most that many seconds; returns descriptors and events."""
        if seconds < 0.001:  # shorter than poll can wait
            time.sleep(max(0.0, seconds))
        return self._poll.poll(int(seconds * 1000) if seconds > 0 else 0)

    def drop(self, peer: int) -> None:
        """Stop polling a peer that has closed its socket."""
        self._poll.unregister(self.to[peer].socket.fileno())

    def interrupt(self) -> None:
        """Make the thread in `poll` return, because there is something else to wait for."""
        if self.is_polling and self._self_pipe is not None:
            self._self_pipe.notify()

    def interrupted(self) -> None:
        """An interrupt has ended `poll`: let the next `poll` sleep."""
        if self._self_pipe is not None:
            self._self_pipe.drain()
