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

from course.checking import landlock
from course.checking.limits import mark_of

MOST_STARTED = 200
"""Processes that a session may start, one after the other."""

CACHES = ("__pycache__", ".cache", ".config/matplotlib", ".matplotlib", ".numba")
"""Folders in which libraries keep what they can make again."""

CODE = (".py", ".pyc", ".pth", ".so")
"""Not even there, since others would run it."""

WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC

CHANGES: dict[str, tuple[tuple[int, int], ...]] = {
    "os.remove": ((0, 1),), "os.rmdir": ((0, 1),), "os.rename": ((0, 2), (1, 3)), "os.truncate": ((0, -1),),
    "os.mkdir": ((0, 2),), "os.link": ((0, 2), (1, 3)), "os.symlink": ((1, 2),), "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),), "os.utime": ((0, 3),), "os.setxattr": ((0, -1),), "os.removexattr": ((0, -1),),
    "shutil.rmtree": ((0, 1),), "shutil.move": ((0, -1), (1, -1)), "sqlite3.connect": ((0, -1),),
}  # fmt: skip
"""Events that change files: which of their arguments are paths, and which the folders' descriptors that these are
relative to (-1: none).
"""

FOLLOWED = {"open", "os.truncate", "os.chmod", "os.chown", "os.utime", "os.setxattr", "sqlite3.connect"}
"""Those that, of a symbolic link, change what it points to."""

LISTS = ("os.listdir", "os.scandir")

BOUNDS = ("resource.setrlimit", "resource.prlimit")

STARTS = ("os.fork", "os.forkpty", "subprocess.Popen", "os.posix_spawn", "os.system")

WATCHED = frozenset({"open", "os.kill", "os.killpg", *CHANGES, *LISTS, *BOUNDS, *STARTS})


class Fence:
    """Refuses, with a PermissionError, what reaches beyond the folders `inside` and the processes with this mark, and
    to read what is in the folders `secret`.
    """

    def __init__(self, inside: Sequence[Path], mark: int, secret: Sequence[Path] = ()) -> None:
        self._inside = tuple(f"{path.resolve()}{os.sep}" for path in inside)
        self._secret_folders = tuple(secret)
        self._secret = tuple(f"{path.resolve()}{os.sep}" for path in secret)
        self._mark = mark
        self._started = mmap.mmap(-1, 8)  # shared with the processes that it forks

    def put_up(self) -> None:
        """From now on, for good; `input`, for which nobody is there, says so as well."""
        builtins.input = no_input
        landlock.hide(self._secret_folders)
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in WATCHED:  # there are events that come by the million, as that of `id`
            return
        if event == "open":
            path, _, flags = arguments
            is_writing = isinstance(flags, int) and flags & WRITING
            if not isinstance(path, int) and (is_writing or self._secret):
                place = place_of(path, -1, is_followed=True)
                self._reading(place)
                if is_writing:
                    self._writing(place)
        elif event in CHANGES:
            for path, relative_to in CHANGES[event]:
                if path < len(arguments) and not isinstance(arguments[path], int):
                    folder = arguments[relative_to] if 0 <= relative_to < len(arguments) else -1
                    self._writing(place_of(arguments[path], folder, event in FOLLOWED))
        elif event in LISTS:
            if arguments[0] is not None and not isinstance(arguments[0], int):
                self._reading(place_of(arguments[0], -1, is_followed=True))
        elif event in ("os.kill", "os.killpg"):
            self._signal(event, *arguments[:2])
        elif event in BOUNDS:
            if arguments[-1] is not None:
                self._bound(*arguments[-2:])
        elif event in STARTS and sys._getframe(1).f_code is not fork_uncounted.__code__:
            self._start()

    def _reading(self, place: str) -> None:
        """Refuse to look into the teacher's files."""
        if f"{place}{os.sep}".startswith(self._secret) and not f"{place}{os.sep}".startswith(self._inside):
            raise PermissionError(f"an answer may not read the teacher's files, such as {place}")

    def _writing(self, place: str) -> None:
        """Refuse to change a file outside."""
        if not place or f"{place}{os.sep}".startswith(self._inside) or place.endswith("/:memory:"):
            return
        if place.startswith(("/dev/", f"/proc/{os.getpid()}/")) and not place.startswith("/dev/shm/"):
            return
        if any(f"{os.sep}{name}{os.sep}" in f"{place}{os.sep}" for name in CACHES) and not place.endswith(CODE):
            return
        raise PermissionError(f"an answer may read any file, but write only where it runs, and not {place}")

    def _signal(self, event: str, target: int, number: int) -> None:
        """Refuse to signal a process that this one did not start."""
        is_own = target in (0, os.getpid(), os.getpgid(0)) or (target > 0 and mark_of(target) == self._mark)
        if not is_own and number != 0 and sys.platform == "linux":
            raise PermissionError(f"an answer may not send a signal to a process that it did not start ({target})")

    def _bound(self, what: int, bounds: Any) -> None:
        """Refuse to widen a bound, which an administrator's process may, and to change the mark."""
        import resource

        own, hard = resource.getrlimit(what)[1], tuple(bounds)[1]
        is_wider = own != resource.RLIM_INFINITY and (hard == resource.RLIM_INFINITY or hard > own)
        if is_wider or what == getattr(resource, "RLIMIT_MSGQUEUE", None):
            raise PermissionError("an answer may not widen the bounds of its process")

    def _start(self) -> None:
        """Refuse to start ever more processes."""
        (count,) = struct.unpack("q", self._started[:8])
        if count >= MOST_STARTED:
            raise PermissionError(f"an answer may not start more than {MOST_STARTED} processes")
        self._started[:8] = struct.pack("q", count + 1)


def place_of(path: Any, folder: Any, is_followed: bool) -> str:
    """Where a path leads to, symbolic links included; `folder`: the descriptor that it is relative to, or -1.

    Empty if that is nowhere: the folder in which the process runs may be gone.
    """
    try:
        name = os.fsdecode(path)
        if isinstance(folder, int) and folder >= 0 and not os.path.isabs(name):
            name = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), name)
        if is_followed:
            return os.path.realpath(name)
        parent, last = os.path.split(name.rstrip(os.sep) or os.sep)
        return os.path.join(os.path.realpath(parent), last)
    except OSError:
        return ""


def fork_uncounted() -> int:
    """As os.fork, for processes that a check starts: of them there may be as many as it needs."""
    return os.fork()


def no_input(prompt: object = "") -> NoReturn:
    """In place of Python's `input`."""
    raise RuntimeError("an answer cannot ask with input(): it is called by the check, and nobody is there to type")
