"""The processes that a student's code has started, wherever they have gone: counted and ended; and what they leave.

On Linux they all are below their supervisor (`supervisor.py`). Elsewhere, and where that was ended, they are found by
their mark, which a process that means to can drop.
"""

from __future__ import annotations

import contextlib
import glob
import os
import signal
import socket
import subprocess
import sys
import time

import psutil

from course.checking.limits import mark_of
from course.checking.supervisor import descendants

TOKEN = "MINIDL_ANSWER"
"""The environment variable with the mark, for systems where a process cannot be asked for its limits."""

PATIENCE = 5.0
"""Seconds in which killed processes have to be gone."""


def marked(mark: int) -> list[psutil.Process]:
    """The processes that carry a mark; daemons, orphans and other sessions' leaders included."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            own = mark_of(process.pid)
            is_ours = process.environ().get(TOKEN) == str(mark) if own is None else own == mark
            if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def used(supervisor: int, mark: int) -> tuple[int, int]:
    """How many processes there are below a supervisor, and the bytes of memory that they have for themselves."""
    processes = below(supervisor) or marked(mark)
    nbytes = sum(memory_of(process, is_shared=False) for process in processes)
    if nbytes > ASKED_BEYOND:
        nbytes = sum(memory_of(process, is_shared=True) for process in processes)
    return len(processes), nbytes


ASKED_BEYOND = 2**31
"""Bytes that processes may seem to have until they are asked what they share, which takes milliseconds of each."""


def memory_of(process: psutil.Process, is_shared: bool) -> int:
    """The bytes that a process has for itself; is_shared: of those that copies made by fork have too, its part."""
    with contextlib.suppress(psutil.Error):
        if is_shared:
            with contextlib.suppress(OSError), open(f"/proc/{process.pid}/smaps_rollup") as lines:
                for line in lines:
                    if line.startswith("Pss_Anon:"):
                        return 1024 * int(line.split()[1])
        memory = process.memory_info()
        return int(memory.rss - getattr(memory, "shared", 0))
    return 0  # it has ended


def below(supervisor: int) -> list[psutil.Process]:
    """All that a supervisor's process has started (Linux; elsewhere nothing, since orphans have left it)."""
    found = []
    for pid in descendants(supervisor) if sys.platform == "linux" else ():
        with contextlib.suppress(psutil.Error):
            found.append(psutil.Process(pid))
    return found


def end_all(supervisor: subprocess.Popen[bytes], control: socket.socket, mark: int) -> None:
    """Have a supervisor end all that is below it; return when that is gone.

    Where it cannot know all, or was itself ended, the rest is found by its mark.
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


def end_marked(mark: int) -> None:
    """Kill all that carries a mark; return when they are gone."""
    until = time.monotonic() + PATIENCE
    while strays := marked(mark):
        for kill in (signal.SIGSTOP, signal.SIGKILL):  # all are stopped first, so that none starts another meanwhile
            for stray in strays:
                with contextlib.suppress(psutil.Error):
                    stray.send_signal(kill)
        if time.monotonic() > until:
            break
        time.sleep(0.001)


SHARED_MEMORY = "/dev/shm"
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
            inodes |= {int(line.split()[4]) for line in lines if "/dev/shm/" in line}
    return inodes
