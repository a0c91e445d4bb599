"""End the whole job by MPI_Abort, after mpiexec has read what this rank wrote.

mpiexec reads a rank's output through pipes and forwards it. It ends the job as soon as it learns of the abort; output
that it has not read by then is lost, even if it was written before.
"""

from __future__ import annotations

import array
import contextlib
import os
import stat
import sys
import time

PATIENCE_SECONDS = 2.0  # the longest wait for mpiexec to read, which may have been stopped


def abort(code: int) -> None:
    """End all ranks of the job; mpiexec exits with `code`."""
    from mpi4py import MPI  # not above, because this import initializes MPI in the process

    for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):  # the reader has gone, or the program has closed it
                stream.flush()
        wait_until_read(descriptor, PATIENCE_SECONDS)
    MPI.COMM_WORLD.Abort(code)


def wait_until_read(descriptor: int, seconds: float) -> None:
    """Return when the pipe `descriptor` is empty or after `seconds`; at once if it is not a pipe."""
    end = time.monotonic() + seconds
    while _unread_bytes(descriptor) and time.monotonic() < end:
        time.sleep(0.001)


def _unread_bytes(descriptor: int) -> int:
    try:
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return 0
        import fcntl
        import termios

        count = array.array("i", [0])
        fcntl.ioctl(descriptor, termios.FIONREAD, count)
    except (ImportError, OSError):  # Windows has no such call; the program may have closed the descriptor
        return 0
    return count[0]
