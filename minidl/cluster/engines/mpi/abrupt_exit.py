"""A rank inside mpiexec that leaves by os._exit ends the whole job, with an exit code that is not 0.

mpiexec takes a rank that exits with code 0 for one that has done its work, ends the others, and reports success.
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
    """Inside, os._exit in this process says so on standard error and aborts the job; its copies (os.fork) are free."""
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
