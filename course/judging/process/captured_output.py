"""Captures what a student's process prints: reads all, so that the process never blocks, and keeps the beginning."""

from __future__ import annotations

import os
import select
import threading
import time
from typing import IO

from course.sandbox.exchange.channel import ready

BEHIND_SECONDS = 0.2
"""The longest time for which `text` waits until the pipe has been read."""


class CapturedOutput:
    """The first `most` characters printed since the last `forget`; kept after the process has ended."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = bytearray()
        self._keeping = threading.Lock()  # held while something is taken out of the pipe and kept
        self._pipe: IO[bytes] | None = None
        self._reader: threading.Thread | None = None

    def read_from(self, pipe: IO[bytes]) -> None:
        """Forget the text, then keep what comes through this pipe until its other end is closed."""
        self._kept.clear()
        self._pipe = pipe
        self._reader = threading.Thread(target=self._read_all, args=(pipe,), daemon=True)
        self._reader.start()

    def note(self, text: str) -> None:
        """Add a text that did not come through the pipe."""
        with self._keeping:
            self._keep(text.encode(errors="replace"))

    @property
    def text(self) -> str:
        """The text, including what is still in the pipe."""
        until = time.monotonic() + BEHIND_SECONDS
        while self._is_behind() and time.monotonic() < until:
            time.sleep(0.001)
        with self._keeping:  # what it has taken out of the pipe is kept by now
            return self._kept.decode(errors="replace")[: self._most]

    def forget(self) -> None:
        """Keep only what is printed from now on."""
        _ = self.text
        self._kept.clear()

    def finish(self) -> None:
        """Wait at most a second for the end of the pipe, after the process has ended."""
        self._pipe = None
        if self._reader is not None:
            self._reader.join(1.0)

    def _read_all(self, pipe: IO[bytes]) -> None:
        poll, is_open = select.poll(), True
        poll.register(pipe, select.POLLIN)
        while is_open:
            poll.poll()
            with self._keeping:
                data = os.read(pipe.fileno(), 65536)
                self._keep(data)
            is_open = bool(data)
        with self._keeping:
            self._pipe = None if self._pipe is pipe else self._pipe
            pipe.close()

    def _is_behind(self) -> bool:
        """Whether the reading thread has not read everything in the pipe."""
        with self._keeping:
            return self._pipe is not None and ready(self._pipe.fileno(), select.POLLIN, 0.0)

    def _keep(self, data: bytes) -> None:
        self._kept += data[: max(0, 4 * self._most - len(self._kept))]  # a character has at most 4 bytes
