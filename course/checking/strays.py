"""The processes that a student's code has started, wherever they have gone: counted and ended; and what they leave.

On Linux they all are below their supervisor (`supervisor.py`). Elsewhere, and where that was ended, they are found by
a mark in their environment, which a process that means to can drop.
"""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Sequence

import psutil

from course.checking.supervisor import PATIENCE, SHARED_MEMORY, TOKEN, descendants, kill_until_gone


def new_mark() -> str:
    """What no other student's process has in its environment."""
    return secrets.token_hex(8)


def marked(mark: str) -> list[psutil.Process]:
    """The processes that carry a mark."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(TOKEN) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def below(supervisor: int, mark: str) -> list[psutil.Process]:
    """The processes below a supervisor; where orphans leave it (not on Linux), those that carry the mark."""
    if sys.platform != "linux":
        return marked(mark)
    found = []
    for pid in descendants(supervisor):
        with contextlib.suppress(psutil.Error):
            found.append(psutil.Process(pid))
    return found


def used(processes: Sequence[psutil.Process]) -> tuple[int, int]:
    """How many processes these are, and the bytes of memory that they have for themselves."""
    nbytes = sum(memory_of(process, is_shared=False) for process in processes)
    if nbytes > ASKED_BEYOND:
        nbytes = sum(memory_of(process, is_shared=True) for process in processes)
    return len(processes), nbytes


ASKED_BEYOND = 2**31
"""Bytes that processes may seem to have until they are asked what they share, which takes milliseconds of each."""


def memory_of(process: psutil.Process, is_shared: bool) -> int:
    """The bytes that a process has for itself; is_shared: with its share of what forked copies have as well."""
    with contextlib.suppress(psutil.Error):
        if is_shared:
            with contextlib.suppress(OSError), open(f"/proc/{process.pid}/smaps_rollup") as lines:
                for line in lines:
                    if line.startswith("Pss_Anon:"):
                        return 1024 * int(line.split()[1])
        memory = process.memory_info()
        return int(memory.rss - getattr(memory, "shared", 0))
    return 0  # it has ended


def end_all(supervisor: subprocess.Popen[bytes], control: socket.socket, mark: str) -> None:
    """Have a supervisor end all that is below it; return when that is gone.

    The mark finds what a supervisor cannot know (not on Linux), and what it has left if it was killed.
    """
    with contextlib.suppress(OSError):  # it has ended
        control.send(b"e")
    try:
        code = supervisor.wait(PATIENCE + 1.0)
    except subprocess.TimeoutExpired:
        supervisor.kill()
        code = supervisor.wait()
    if code != 0 or sys.platform != "linux":
        end_marked(mark)


def end_marked(mark: str) -> None:
    """Kill all that carries a mark."""
    kill_until_gone(lambda: [process.pid for process in marked(mark)])


NAMES = ("psm_", "sem.", "pym-", "mp-", "minidl")
"""How the names begin under which Python's processes share memory and semaphores."""


def shared_memory() -> frozenset[str]:
    """The entries of shared memory that there are."""
    try:
        return frozenset(name for name in os.listdir(SHARED_MEMORY) if name.startswith(NAMES))
    except OSError:  # a system that keeps it elsewhere
        return frozenset()


def remove_shared_memory(before: frozenset[str]) -> None:
    """Remove the entries that are new since `before` and that no process has mapped any more."""
    new = shared_memory() - before
    mapped = mapped_files() if new else set()
    for name in new:
        with contextlib.suppress(OSError):
            path = os.path.join(SHARED_MEMORY, name)
            if os.stat(path).st_ino not in mapped:
                os.unlink(path)


def mapped_files() -> set[int]:
    """The inodes of shared memory that processes have mapped: a semaphore is mapped under a name that it had before."""
    inodes = set()
    for maps in glob.glob("/proc/[0-9]*/maps"):
        with contextlib.suppress(OSError), open(maps, encoding="utf-8", errors="replace") as lines:
            inodes |= {int(line.split()[4]) for line in lines if f"{SHARED_MEMORY}/" in line}
    return inodes
