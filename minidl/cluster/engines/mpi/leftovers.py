"""What MPI leaves behind when a run ends abnormally: processes, and segments in /dev/shm (with MPICH 4 MB a run).

Once all ranks are connected, the names of the segments have served; the ranks remove them, so that nothing is left
however they end. The launcher cleans up after a run that ended while its ranks were still connecting.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from minidl.cluster.engines.mpi.started import StartedProcess

if TYPE_CHECKING:
    from mpi4py import MPI

FOLDER = Path("/dev/shm")
MAPPED = re.compile(r"/dev/shm/(?:mpich_|ucx_shm_posix_|sm_segment)\S+")  # MPICH, its transport UCX, Open MPI
HWLOC = "HWLOC_XMLFILE"


def forget_names(comm: MPI.Intracomm) -> None:
    """Take the names of this run's segments away; all ranks call it when MPI has been initialized."""
    comm.alltoall([None] * comm.size)  # whom a rank has never sent to, it may not have opened yet
    for path in _mapped_by("self"):
        with contextlib.suppress(FileNotFoundError):  # each name is known to all ranks of the machine
            os.unlink(path)


def no_topology_file() -> dict[str, str]:
    """The environment in which MPICH's mpiexec writes no description of the machine.

    It would write one to /tmp for every run and remove it only if each rank ends by MPI_Finalize. It writes none where
    the user has named a file; an empty name means that there is no file, and each rank looks for itself.
    """
    return {HWLOC: os.environ.get(HWLOC, "")}


def end_processes(mark: str, seconds: float) -> None:
    """Kill every process of this user that has `mark` in the environment it was started with; return when all are gone.

    mpiexec's helpers and the ranks have sessions of their own, so no process group reaches them. Gives up after
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
        if entry.name.isdigit() and _has_mark(entry, mark):
            with contextlib.suppress(ProcessLookupError):
                process = StartedProcess(int(entry.name))
                if _has_mark(entry, mark):  # still: now that the process is held, its number is not reused
                    yield process
                else:
                    process.close()


def _has_mark(process: Path, mark: bytes) -> bool:
    try:
        return mark in (process / "environ").read_bytes()
    except OSError:  # another user's process, or one that has just ended
        return False


def segments() -> set[str]:
    """The names of MPI's segments at the moment, of this and other runs."""
    return {str(path) for path in FOLDER.glob("*") if MAPPED.fullmatch(str(path))}


def remove_unused(known: set[str]) -> None:
    """Remove this user's segments that have come since `known` was taken and that no process holds."""
    new = segments() - known
    if new:
        held = set().union(*(_mapped_by(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()))
        for path in new - held:
            with contextlib.suppress(FileNotFoundError):
                if os.stat(path).st_uid == os.getuid():
                    os.unlink(path)


def _mapped_by(process: str) -> set[str]:
    try:
        return set(MAPPED.findall(Path(f"/proc/{process}/maps").read_text()))
    except OSError:  # another user's process, one that has just ended, or a system without /proc
        return set()
