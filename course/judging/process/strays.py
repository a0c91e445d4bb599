"""Finds, measures and ends the processes that a student's code started, and removes what they leave.

On Linux all of them are below their supervisor (`supervisor.py`). On other systems, and after the supervisor was
killed, they are found by a mark in their environment, which a process can remove on purpose.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import secrets
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from course.judging.process.supervision import Supervision
from course.sandbox.supervisor import PATIENCE, SHARED_MEMORY, TOKEN, descendants, kill_until_gone

if TYPE_CHECKING:
    import psutil


def new_mark() -> str:
    """A mark for the environment of one student's process, different from all others."""
    return secrets.token_hex(8)


def marked(mark: str) -> list[psutil.Process]:
    """The processes with a mark in their environment."""
    import psutil

    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(TOKEN) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def below(supervisor: int, mark: str) -> list[int]:
    """The processes below a supervisor; on systems where orphans leave it (not Linux), those with the mark."""
    return descendants(supervisor) if sys.platform == "linux" else [process.pid for process in marked(mark)]


@dataclass(frozen=True)
class Used:
    """What several processes use together.

    Attributes
        processes   their number
        threads     of all of them
        memory      bytes, private and shared; memory that several of them share counts once
        unnamed     bytes of files without a name that are open or mapped: removed files, and memory files (memfd)
    """

    processes: int
    threads: int
    memory: int
    unnamed: int


def used(processes: Sequence[int]) -> Used:
    """What several processes use together."""
    numbers = [status_of(process) for process in processes]
    memory = sum(own for _, own in numbers)
    if memory > ASKED_BEYOND:
        memory = sum(memory_of(process) for process in processes)
    unnamed: dict[tuple[int, int], int] = {}
    for process in processes:
        unnamed |= unnamed_files(process)
    return Used(len(processes), sum(threads for threads, _ in numbers), memory, sum(unnamed.values()))


ASKED_BEYOND = 2**31
"""Bytes. Up to this sum, shared memory counts once for each process; above it, memory is measured exactly, which takes
milliseconds per process.
"""


def status_of(pid: int) -> tuple[int, int]:
    """The number of threads of a process, and its bytes of memory that belong to no file."""
    if sys.platform != "linux":
        import psutil

        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            return process.num_threads(), process.memory_info().rss
        return 0, 0
    numbers = dict.fromkeys(("Threads", "RssAnon", "RssShmem"), 0)
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", errors="replace") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if name in numbers:
                numbers[name] = int(value.split()[0])
    return numbers["Threads"], 1024 * (numbers["RssAnon"] + numbers["RssShmem"])


def memory_of(process: int) -> int:
    """The bytes of memory of a process; memory shared by n processes, as after fork, counts 1/n."""
    found = 0
    with contextlib.suppress(OSError), open(f"/proc/{process}/smaps_rollup") as lines:
        for line in lines:
            if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                found += 1024 * int(line.split()[1])
    return found or status_of(process)[1]


MAPPED = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ (\S+) (\d+) +/(?!dev/zero |SYSV).* \(deleted\)$", re.MULTILINE)


def unnamed_files(pid: int) -> dict[tuple[int, int], int]:
    """The bytes of each file without a name that a process has open or mapped, by device and inode (Linux).

    For a file that is mapped but not open, the mapped bytes count.
    """
    found: dict[tuple[int, int], int] = {}
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", "rb") as file:
        for start, end, device, inode in MAPPED.findall(file.read()):
            major, _, minor = device.partition(b":")
            key = os.makedev(int(major, 16), int(minor, 16)), int(inode)
            found[key] = found.get(key, 0) + int(end, 16) - int(start, 16)
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                status = os.stat(f"/proc/{pid}/fd/{name}")
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                    found[status.st_dev, status.st_ino] = status.st_blocks * 512
    return found


def end_all(supervisor: Supervision, mark: str) -> None:
    """Have a supervisor end all processes below it; return when they have ended.

    The mark finds processes that the supervisor cannot see (not on Linux), or that it left when it was killed.
    """
    if supervisor.end(PATIENCE + 1.0) != 0 or sys.platform != "linux":
        end_marked(mark)


def end_marked(mark: str) -> None:
    """Kill all processes with a mark."""
    kill_until_gone(lambda: [process.pid for process in marked(mark)])


NAMES = ("psm_", "sem.", "pym-", "mp-", "minidl")
"""The beginnings of the names of shared memory and semaphores that Python makes."""


def shared_memory() -> frozenset[str]:
    """The names of the existing shared memory and semaphores."""
    try:
        return frozenset(name for name in os.listdir(SHARED_MEMORY) if name.startswith(NAMES))
    except OSError:  # a system that keeps it elsewhere
        return frozenset()


def remove_shared_memory(before: frozenset[str]) -> None:
    """Remove entries that are not in `before` and that no process has mapped any more."""
    new = shared_memory() - before
    mapped = mapped_files() if new else set()
    for name in new:
        with contextlib.suppress(OSError):
            path = os.path.join(SHARED_MEMORY, name)
            if os.stat(path).st_ino not in mapped:
                os.unlink(path)


def mapped_files() -> set[int]:
    """The inodes of mapped shared memory: by inode, since a mapped semaphore may show an earlier name."""
    inodes = set()
    for maps in glob.glob("/proc/[0-9]*/maps"):
        with contextlib.suppress(OSError), open(maps, encoding="utf-8", errors="replace") as lines:
            inodes |= {int(line.split()[4]) for line in lines if f"{SHARED_MEMORY}/" in line}
    return inodes
