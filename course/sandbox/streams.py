"""Reopens standard output and standard error of a student's process, which its code may close."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from typing import Any

OUT_OF_THE_WAY = 900
"""Copies have descriptors from this number on, which a loop that closes the first few does not reach."""


class Streams:
    """Keeps copies of standard output and standard error, to restore them."""

    def __init__(self) -> None:
        self._copies = {number: fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, OUT_OF_THE_WAY) for number in (1, 2)}

    def put_back(self) -> None:
        """Replace each stream that cannot be printed to; a working stream of the student's own stays in place."""
        for number, name in ((1, "stdout"), (2, "stderr")):
            with contextlib.suppress(OSError):  # the copy may be closed as well
                if not is_open(number):
                    os.dup2(self._copies[number], number)
                if not can_print(getattr(sys, name, None)):
                    stream = open(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
                    setattr(sys, name, stream)


def flush() -> None:
    """Flush both streams. Errors are ignored: a student's code may have closed or replaced them."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def is_open(descriptor: int) -> bool:
    """Whether a descriptor is open."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def can_print(stream: Any) -> bool:
    """Whether this stream can be printed to."""
    try:
        stream.write("")
    except Exception:  # None, closed, or no stream at all
        return False
    return True
