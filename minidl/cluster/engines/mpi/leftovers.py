"""What MPI leaves in /dev/shm when a run ends abnormally: with MPICH 4 MB a run, under a name that nobody knows.

Once all ranks are connected the names have served; the ranks take them away themselves, so that nothing is left however
they end. A run that is ended while its ranks are still connecting is cleaned up by the launcher.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpi4py import MPI

FOLDER = Path("/dev/shm")
MAPPED = re.compile(r"/dev/shm/(?:mpich_|sm_segment)\S+")  # of MPICH; of Open MPI


def forget_names(comm: MPI.Intracomm) -> None:
    """Take the names of this run's segments away; all ranks call it when MPI has been initialized."""
    comm.alltoall([None] * comm.size)  # whom a rank has never sent to, it may not have opened yet
    for path in _mapped_by("self"):
        with contextlib.suppress(FileNotFoundError):  # each name is known to all ranks of the machine
            os.unlink(path)


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
