"""A lock on a file, so that one process at a time sets up the environment. Standard library only."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(path: Path, say: Callable[[str], None]) -> Iterator[int]:
    """Hold the lock on `path` during the block; if another process holds it, `say` so once and wait.

    Yields the descriptor of the lock. A child process that inherits it keeps the lock until the child ends, so an
    installer that outlives a killed parent still excludes others. The operating system releases the lock when its
    holders end.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not lock_now(descriptor):
            say("Another start of the course is setting up .venv: waiting for it.")
            while not lock_now(descriptor):
                time.sleep(0.1)
        yield descriptor
    finally:
        os.close(descriptor)


if sys.platform == "win32":
    import msvcrt

    def lock_now(descriptor: int) -> bool:
        """Take the lock if it is free; returns whether it was."""
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def lock_now(descriptor: int) -> bool:
        """Take the lock if it is free; returns whether it was."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
