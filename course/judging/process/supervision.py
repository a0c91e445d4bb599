"""The supervisor of a student's process, as the check holds it; see `course/sandbox/supervisor.py`."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable

from course.sandbox.exchange.channel import ready
from course.sandbox.supervisor import OWN


class Supervision:
    """A supervisor, known by the messages that it sends. It is no child of this process, so wait(2) cannot be used.

    Attributes
        link           this process's end of the connection to it
        its_link       the supervisor's end, to be closed when it has been passed on
        pid            its process number; 0 until it runs
        answer         the number of the student's process; 0 until it runs
        has_own_view   whether that process has its own view of the file system
        reap           called when it has ended
    """

    def __init__(self) -> None:
        self.link, self.its_link = socket.socketpair()
        self.pid = self.answer = 0
        self.has_own_view = False
        self.reap: Callable[[], object] = lambda: None
        self._come = b""
        self._code: int | None = None
        self._has_ended = False

    def poll(self) -> int | None:
        """The exit code of the student's process, as in subprocess, once all its processes have ended; before, None."""
        return self.wait(0.0)

    def wait(self, seconds: float) -> int | None:
        """Wait at most `seconds` for the exit code that `poll` returns; None if it is not known by then."""
        until = time.monotonic() + seconds
        while not self._has_ended and ready(self.link.fileno(), select.POLLIN, until):
            self._read()
        return self._code

    def await_answer(self) -> None:
        """Return when the student's process runs, or has failed to start."""
        while not (self.answer or self._has_ended):
            self._read()

    def end(self, seconds: float) -> int | None:
        """Ask the supervisor to end all processes below it and itself; kill it if it has not ended after `seconds`."""
        with contextlib.suppress(OSError):  # it has ended
            self.link.send(b"e")
        self.its_link.close()
        if self.wait(seconds) is None and self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.wait(seconds)
        return self._code

    def _read(self) -> None:
        """Wait for the next bytes and read them. The connection closes when the supervisor ends."""
        try:
            come = self.link.recv(4096)
        except ConnectionError:
            come = b""
        *lines, self._come = (self._come + come).split(b"\n")
        for line in lines:
            if not self.pid:
                self.pid = int(line)
            elif b" " in line:
                number, view = line.split()
                self.answer, self.has_own_view = int(number), view == OWN
            else:
                self._code = int(line)
        if not come:
            self._has_ended = True
            self.reap()
            if self._code is None:
                self._code = -signal.SIGKILL
