"""The file without a name in which a student's process writes its stack when the check sends a signal.

A file with a name would be in a folder where the student's code may write. The code could replace it by a link to
another file, which the check would then empty, or by a pipe, from which the check would read forever.
"""

from __future__ import annotations

import os
import tempfile

MOST_READ = 100_000
"""Bytes; the student's code can write into the file as well."""


class StackFile:
    """An empty file. descriptor: passed to the process that writes."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  (it is closed by `close`)
        self.descriptor = self._file.fileno()

    def text(self) -> str:
        """The beginning of what the process has written."""
        return os.pread(self.descriptor, MOST_READ, 0).decode(errors="replace")

    def close(self) -> None:
        """Close it; the file vanishes with the last process that has it open."""
        self._file.close()
