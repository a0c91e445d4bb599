"""Counting what a run could leave behind: processes, descriptors, names in /dev/shm."""

from __future__ import annotations

import os
import time
from pathlib import Path

SERVERS = (  # these live as long as the process that uses them
    "multiprocess.forkserver",
    "multiprocess.resource_tracker",
    "multiprocessing.resource_tracker",  # of the standard library: tests of the judge use its shared memory
    "course.sandbox.warm_parent",  # the processes of answers are below it and count
)


def _parents() -> dict[int, int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            if stat[0] != "Z" or int(stat[17]) > 1:  # a killed process is a zombie before its other threads have ended
                parents[int(entry.name)] = int(stat[1])
    return parents


def command(pid: int) -> str:
    """The command line of a process, or nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def descendants(pid: int) -> list[int]:
    """The processes below `pid`, the fork server and the resource tracker included."""
    return _below(pid, _parents())


def ranks(pid: int) -> list[int]:
    """The processes below `pid` other than the two servers themselves: forked ranks, started ranks."""
    parents = _parents()
    servers = {child for child, parent in parents.items() if parent == pid and _is_server(child)}
    return [child for child in _below(pid, parents) if child not in servers]


def _below(pid: int, parents: dict[int, int]) -> list[int]:
    found, front = [], [pid]
    while front:
        front = [child for child, parent in parents.items() if parent in front]
        found += front
    return found


def _is_server(pid: int) -> bool:
    return any(server in command(pid) for server in SERVERS)


def alive(pids: list[int]) -> list[int]:
    running = _parents()
    return [pid for pid in pids if pid in running]


def wait_until_gone(pids: list[int], seconds: float = 20.0) -> list[int]:
    """Those of the processes that are still there after `seconds`.

    The default is long for a loaded machine and shorter than every timeout after which a lost process would end.
    """
    end = time.monotonic() + seconds
    while alive(pids) and time.monotonic() < end:
        time.sleep(0.01)
    return alive(pids)


def left_in_shared_memory(before: set[str], seconds: float = 20.0) -> set[str]:
    """The names in /dev/shm that were not there `before`, and that no process holds, for as long as `seconds`.

    Tests in other processes make names and remove them; what a run has left behind stays.
    """
    end = time.monotonic() + seconds
    while (left := shared_memory() - before - _held(shared_memory())) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def shared_memory() -> set[str]:
    """The names in /dev/shm."""
    return set(os.listdir("/dev/shm"))


def _held(names: set[str]) -> set[str]:
    """Those of the names in /dev/shm that some process has mapped."""
    maps = ""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                maps += (entry / "maps").read_text()
            except OSError:
                continue  # it has just ended
    return {name for name in names if f"/dev/shm/{name}" in maps}


def descriptors() -> set[str]:
    """This process's open descriptors and what they are."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.add(f"{entry.name} {os.readlink(entry)}")
        except OSError:
            continue  # the descriptor by which the folder itself was read
    return found
