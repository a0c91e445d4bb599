"""What a student's code is kept from in its own process: others' files and processes, and starting without end.

A fence against accidents, built on audit events (PEP 578), which Python code cannot take down again. What goes round
Python (a shell command, ctypes) has the rights of the user who makes the check; only its time, memory, output and
processes are bounded. Who grades strangers' work does so as a user, or in a container, that has nothing to lose.
"""

from __future__ import annotations

import builtins
import mmap
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from course.checking.limits import mark_of

MOST_STARTED = 200
"""Processes that a session may start, one after the other."""

CACHES = ("__pycache__", ".cache", ".config", ".local", ".matplotlib", ".numba", ".ipython", ".jupyter")
"""Folders in which libraries keep what they can make again."""

WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC

CHANGES = {"os.remove": 1, "os.rmdir": 1, "os.rename": 2, "os.truncate": 1, "shutil.rmtree": 1, "shutil.move": 2}
"""Events that change files, and how many of their arguments are paths."""

STARTS = ("os.fork", "os.forkpty", "subprocess.Popen", "os.posix_spawn", "os.system")

WATCHED = frozenset({"open", "os.kill", "os.killpg", *CHANGES, *STARTS})


class Fence:
    """Refuses, with a PermissionError, what reaches beyond the folders `inside` and the processes with this mark."""

    def __init__(self, inside: Sequence[Path], mark: int) -> None:
        self._inside = tuple(f"{path.resolve()}{os.sep}" for path in inside)
        self._mark = mark
        self._started = mmap.mmap(-1, 8)  # shared with the processes that it forks

    def put_up(self) -> None:
        """From now on, for good; `input`, for which nobody is there, says so as well."""
        builtins.input = no_input
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in WATCHED:  # there are events that come by the million, as that of `id`
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & WRITING and not isinstance(path, int):
                self._file(path)
        elif event in CHANGES:
            for path in arguments[: CHANGES[event]]:
                if not isinstance(path, int):
                    self._file(path)
        elif event in ("os.kill", "os.killpg"):
            self._signal(event, *arguments[:2])
        elif event in STARTS:
            self._start()

    def _file(self, path: Any) -> None:
        """Refuse to change a file outside."""
        try:
            place = os.path.abspath(os.fsdecode(path))
        except FileNotFoundError:  # the folder in which it runs is gone, and nothing is relative to it
            return
        if os.path.islink(os.path.dirname(place)):
            place = os.path.realpath(place)
        if f"{place}{os.sep}".startswith((*self._inside, "/dev/", "/proc/")) or any(
            f"{os.sep}{name}" in place for name in CACHES
        ):
            return
        raise PermissionError(f"an answer may read any file, but write only where it runs, and not {place}")

    def _signal(self, event: str, target: int, number: int) -> None:
        """Refuse to signal a process that this one did not start."""
        is_own = target in (0, os.getpid(), os.getpgid(0)) or (target > 0 and mark_of(target) == self._mark)
        if not is_own and number != 0 and sys.platform == "linux":
            raise PermissionError(f"an answer may not send a signal to a process that it did not start ({target})")

    def _start(self) -> None:
        """Refuse to start ever more processes."""
        (count,) = struct.unpack("q", self._started[:8])
        if count >= MOST_STARTED:
            raise PermissionError(f"an answer may not start more than {MOST_STARTED} processes")
        self._started[:8] = struct.pack("q", count + 1)


def no_input(prompt: object = "") -> NoReturn:
    """In place of Python's `input`."""
    raise RuntimeError("an answer cannot ask with input(): it is called by the check, and nobody is there to type")
