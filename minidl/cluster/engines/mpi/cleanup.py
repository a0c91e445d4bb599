"""Cleaning up what MPI leaves behind when a run ends abnormally: processes, and segments in /dev/shm (4 MB by MPICH).

The names of the segments are needed only until all ranks are connected. The ranks then remove the names, so that the
kernel frees the segments however the ranks end. The launcher removes those of a run that ended before.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpi4py import MPI

FOLDER = Path("/dev/shm")
MAPPED = re.compile(r"/dev/shm/(?:mpich_|ucx_shm_posix_|sm_segment)\S+")  # MPICH, its transport UCX, Open MPI
HWLOC = "HWLOC_XMLFILE"
MAPPING_SECONDS = 0.2  # from making a segment to mapping it, at most


class StartedProcess:
    """A process that mpiexec has started, with the methods of multiprocess.Process that a supervisor calls."""

    exitcode: None = None  # known only to mpiexec, its parent

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.sentinel = os.pidfd_open(pid)  # readable when the process has ended

    def is_alive(self) -> bool:
        return not self._has_ended(0.0)

    def join(self, timeout: float | None = None) -> None:
        self._has_ended(timeout)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.sentinel, signal.SIGKILL)

    def close(self) -> None:
        os.close(self.sentinel)

    def _has_ended(self, timeout: float | None) -> bool:
        return bool(select.select([self.sentinel], [], [], timeout)[0])


def forget_names(comm: MPI.Intracomm) -> None:
    """Remove the names of this run's segments; all ranks call it together, after MPI has been initialized."""
    comm.alltoall([None] * comm.size)  # a rank may open another's segment only when it first sends to it
    for path in _mapped_by("self"):
        with contextlib.suppress(FileNotFoundError):  # another rank of this machine was first
            os.unlink(path)


def no_topology_file() -> dict[str, str]:
    """Environment variables that keep MPICH's mpiexec from writing a description of the machine to /tmp.

    mpiexec removes that file only if each rank ends by MPI_Finalize. It writes none if the variable names a file; an
    empty name means that there is none, and that each rank inspects the machine itself.
    """
    return {HWLOC: os.environ.get(HWLOC, "")}


def end_job(mark: str, known: set[str], seconds: float) -> None:
    """Kill the other processes of a job whose launcher has ended, and remove its shared-memory segments.

    known: segments that were there before the job.

    A rank that finds the launcher gone while the job starts calls it: the others may be in MPI's own initialization,
    which would wait for this rank forever.
    """
    names = _mapped_by("self")
    for process in _marked(mark.encode()):
        names |= _mapped_by(str(process.pid))
        process.close()
    for path in names:
        with contextlib.suppress(FileNotFoundError):  # another rank that ends the job was first
            os.unlink(path)
    end_processes(mark, seconds)
    remove_unused(known)  # those that were made meanwhile


def end_processes(mark: str, seconds: float) -> None:
    """Kill every other process of this user whose initial environment contains `mark`; return when all are gone.

    mpiexec's helpers and the ranks have sessions of their own, so no process group includes them. Gives up after
    `seconds`.
    """
    end = time.monotonic() + seconds
    while (found := list(_marked(mark.encode()))) and time.monotonic() < end:
        for process in found:
            process.kill()
        for process in found:
            process.join(max(0.0, end - time.monotonic()))
            process.close()


def _marked(mark: bytes) -> Iterator[StartedProcess]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _has_mark(entry, mark):
            with contextlib.suppress(ProcessLookupError):
                process = StartedProcess(int(entry.name))
                if _has_mark(entry, mark):  # checked again: from now on the number cannot be reused
                    yield process
                else:
                    process.close()


def _has_mark(process: Path, mark: bytes) -> bool:
    try:
        return mark in (process / "environ").read_bytes()
    except OSError:  # another user's process, or one that has just ended
        return False


def segments() -> set[str]:
    """The names of the MPI segments that exist now, of any run."""
    return {str(path) for path in FOLDER.glob("*") if MAPPED.fullmatch(str(path))}


def remove_unused(known: set[str]) -> None:
    """Remove this user's segments that are not in `known` and that no process has mapped.

    They are looked up twice, because another job may have made one that it is about to map.
    """
    unused = _unused(known)
    if unused:
        time.sleep(MAPPING_SECONDS)
    for path in unused & _unused(known):
        with contextlib.suppress(FileNotFoundError):
            if os.stat(path).st_uid == os.getuid():
                os.unlink(path)


def _unused(known: set[str]) -> set[str]:
    new = segments() - known
    if not new:
        return new
    return new.difference(*(_mapped_by(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()))


def _mapped_by(process: str) -> set[str]:
    try:
        return set(MAPPED.findall(Path(f"/proc/{process}/maps").read_text()))
    except OSError:  # another user's process, one that has just ended, or a system without /proc
        return set()
