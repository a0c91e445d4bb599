"""Inside mpiexec, make a rank that calls os._exit end the whole job, with an exit code other than 0.

Without this, mpiexec would take the exit of a rank with code 0 for success, and end the other ranks.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import NoReturn

from mpi4py import MPI

from minidl.cluster.engines.mpi.abort import abort


@contextlib.contextmanager
def abrupt_exit_ends_the_job() -> Iterator[None]:
    """Inside, os._exit in this process prints why on standard error and aborts the job; forked copies are exempt."""
    exit_at_once, rank_process = os._exit, os.getpid()

    def _exit(status: int) -> NoReturn:
        if os.getpid() == rank_process:
            code = status & 0xFF or 1
            sys.stderr.write(
                f"rank {MPI.COMM_WORLD.rank} left the program by os._exit({status}) without a result: "
                f"the job ends with exit code {code}\n"
            )
            abort(code)
        exit_at_once(status)

    os._exit = _exit
    try:
        yield
    finally:
        os._exit = exit_at_once
