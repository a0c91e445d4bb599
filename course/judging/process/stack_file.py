"""Where a student's process writes in which line it is, when a check asks: a file without a name.

A file with a name would lie where the student's code may write. It could put a link to another file in its place, which
the check would then empty, or a pipe, which the check would read for ever.
"""

from __future__ import annotations

import os
import tempfile

MOST_READ = 100_000
"""Bytes: the student's code may write into the file, too."""


class StackFile:
    """An empty file. descriptor: the one to pass on to a process."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  (it is closed by `close`)
        self.descriptor = self._file.fileno()

    def text(self) -> str:
        """The beginning of what the process has written."""
        return os.pread(self.descriptor, MOST_READ, 0).decode(errors="replace")

    def close(self) -> None:
        """Let go of it; the file goes with the last process that has it."""
        self._file.close()
