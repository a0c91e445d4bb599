"""The self-pipe trick: a socket to itself, by which one thread ends the poll of another."""

from __future__ import annotations

import contextlib
import select
import socket


class SelfPipe:
    """A pipe whose reading end is in the poll set `poll`."""

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
