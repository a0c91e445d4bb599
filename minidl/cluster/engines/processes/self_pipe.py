"""A bell that one thread rings to end the poll of another."""

from __future__ import annotations

import contextlib
import select
import socket


class SelfPipe:
    """It hangs in the poll set `poll`: rung, it makes a poll return."""

    def __init__(self, poll: select.poll) -> None:
        self._heard, self._rung = socket.socketpair()
        self._heard.setblocking(False)
        self._rung.setblocking(False)
        poll.register(self._heard, select.POLLIN)

    def ring(self) -> None:
        """End the poll that is going on."""
        with contextlib.suppress(BlockingIOError):  # it has been rung so often that it is ringing anyway
            self._rung.send(b"!")

    def hear(self) -> None:
        """The poll has ended: silence, until it is rung again."""
        with contextlib.suppress(BlockingIOError):
            while self._heard.recv(4096):
                pass
