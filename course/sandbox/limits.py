"""Bounds on what a student's process uses, and the time for which it waited for a core."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass

MOST_ASKED = 100
"""The first threads of a process, whose waiting time is read."""


@dataclass(frozen=True)
class Limits:
    """Bounds of one student's process, and of all that it starts.

    Parameters
        seconds     wall-clock seconds of one call of a check, or of one cell; time in which the process was ready
                    to run while others had the cores does not count, so that a busy machine fails no right answer
        total       seconds of all calls of a check together
        memory      bytes of address space of each process (Linux; numpy, numba and BLAS reserve about 1 GB of it before
                    any work), and bytes of memory in use by all together
        processes   number of processes at a time
        threads     number of threads of all processes
        file_size   bytes of each file it writes
        written     bytes of all files together, also of files without a name
        printed     characters of its output that are kept
        reply       bytes of one reply
        cpu         seconds of processor time of each process, after which the kernel ends it
    """

    seconds: float = 20.0
    total: float = 300.0
    memory: int = 4 * 2**30
    processes: int = 100
    threads: int = 10_000
    file_size: int = 2**28
    written: int = 2**30
    printed: int = 4000
    reply: int = 2**28
    cpu: int = 1200

    def apply(self) -> None:
        """Set those limits of this process, and of all that it will start, that the operating system enforces."""
        import resource

        _lower(resource.RLIMIT_CORE, 0)
        _lower(resource.RLIMIT_FSIZE, self.file_size)
        _lower(resource.RLIMIT_CPU, self.cpu)
        if sys.platform == "linux":
            _lower(resource.RLIMIT_AS, self.memory)


def _lower(what: int, value: int) -> None:
    import resource

    _, hard = resource.getrlimit(what)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (bound, bound))


def starved(pid: int) -> float:
    """Seconds in which a process was ready to run while others had the cores; 0 if the system does not report it."""
    waited = 0
    with contextlib.suppress(OSError, IndexError, ValueError):
        for task in os.listdir(f"/proc/{pid}/task")[:MOST_ASKED]:
            with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                waited = max(waited, int(file.read().split()[1]))
    return waited / 1e9


def starved_here() -> float:
    """Seconds in which this thread, of the check, was ready to run while others had the cores."""
    with contextlib.suppress(OSError, IndexError, ValueError), open("/proc/thread-self/schedstat") as file:
        return int(file.read().split()[1]) / 1e9
    return 0.0
