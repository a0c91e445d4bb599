"""Refuses access to files and processes of others, with a PermissionError that says why.

It is built on audit events (PEP 578), whose hooks Python code cannot remove. Actions without an event (`os.mkfifo`, a
shell, ctypes) and replaced functions of Python are left to the kernel: see `landlock.py`. Processes that the student's
code starts are ended by `supervisor.py`.
"""

from __future__ import annotations

import builtins
import mmap
import os
import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from course.sandbox.terms import MAY_WRITE

MOST_STARTED = 200
"""Processes that a session may start in total."""

WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC

CHANGES: dict[str, tuple[tuple[int, int], ...]] = {
    "os.remove": ((0, 1),), "os.rmdir": ((0, 1),), "os.rename": ((0, 2), (1, 3)), "os.truncate": ((0, -1),),
    "os.mkdir": ((0, 2),), "os.link": ((0, 2), (1, 3)), "os.symlink": ((1, 2),), "os.chmod": ((0, 2),),
    "os.chown": ((0, 3),), "os.utime": ((0, 3),), "os.setxattr": ((0, -1),), "os.removexattr": ((0, -1),),
    "shutil.rmtree": ((0, 1),), "shutil.move": ((0, -1), (1, -1)), "sqlite3.connect": ((0, -1),),
}  # fmt: skip
"""Events that change files. For each path: its position among the arguments, and the position of the descriptor of the
folder to which it is relative (-1 for none).
"""

FOLLOWED = {"open", "os.truncate", "os.chmod", "os.chown", "os.utime", "os.setxattr", "sqlite3.connect"}
"""Events that, for a symbolic link, change its target."""

LISTS = ("os.listdir", "os.scandir")

BOUNDS = ("resource.setrlimit", "resource.prlimit")

STARTS = ("os.fork", "os.forkpty", "subprocess.Popen", "os.posix_spawn", "os.system")

NETWORK = ("socket.connect", "socket.bind")

CODE = ("object.__setattr__", ("__code__", "__defaults__", "__kwdefaults__"))
"""The event, and the attributes, by which a function's code is replaced."""

WATCHED = frozenset({"open", "os.kill", "os.killpg", CODE[0], *CHANGES, *LISTS, *BOUNDS, *STARTS, *NETWORK})


class Fence:
    """Refuses to write outside of the folders `inside`, to read the folders `secret`, to use the network, and to signal
    processes that are not below the supervisor.
    """

    def __init__(self, inside: Sequence[Path], secret: Sequence[Path] = ()) -> None:
        self._hook = audit_hook(folders(inside), folders(secret), os.getppid())

    def put_up(self) -> None:
        """Put the fence up, permanently; also make `input` raise, since nobody is there to type."""
        builtins.input = no_input
        sys.addaudithook(self._hook)


def folders(paths: Sequence[Path]) -> tuple[str, ...]:
    return tuple(f"{path.resolve()}{os.sep}" for path in paths)


def audit_hook(
    inside: tuple[str, ...], secret: tuple[str, ...], supervisor: int
) -> Callable[[str, tuple[Any, ...]], None]:
    """The audit hook. It uses local names only: a student's code can assign to the names of this module."""
    watched, changes, followed = WATCHED, MappingProxyType(dict(CHANGES)), FOLLOWED
    lists, bounds, starts, network, (setting, names_of_code) = LISTS, BOUNDS, STARTS, NETWORK, CODE
    writing_flags, may, separator, place, is_below = WRITING, MAY_WRITE, os.sep, place_finder(), descent(supervisor)
    getrlimit, unlimited = resource.getrlimit, resource.RLIM_INFINITY
    own_pid, own_group, is_linux = os.getpid, os.getpgid, sys.platform == "linux"
    started, most = mmap.mmap(-1, 8), MOST_STARTED  # shared with the processes that it forks
    caller, uncounted = sys._getframe, fork_uncounted.__code__

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in watched:  # some events, such as that of `id`, occur by the million
            return
        if event == "open":
            path, _, flags = arguments
            is_writing = isinstance(flags, int) and flags & writing_flags
            if not isinstance(path, int) and (is_writing or secret):
                where = place(path, -1, True)
                reading(where)
                if is_writing:
                    writing(where, "open")
        elif event in changes:
            for path, relative_to in changes[event]:
                if path < len(arguments) and not isinstance(arguments[path], int):
                    folder = arguments[relative_to] if 0 <= relative_to < len(arguments) else -1
                    writing(place(arguments[path], folder, event in followed), event)
        elif event in lists:
            if arguments[0] is not None and not isinstance(arguments[0], int):
                reading(place(arguments[0], -1, True))
        elif event in ("os.kill", "os.killpg"):
            signalling(*arguments[:2])
        elif event in bounds:
            if arguments[-1] is not None:
                bounding(*arguments[-2:])
        elif event in starts:
            if caller(1).f_code is not uncounted:
                starting()
        elif event in network:
            if isinstance(arguments[-1], tuple):  # an internet address; that of a local socket is a path
                raise PermissionError(f"an answer may not use the network, and it tried {arguments[-1][:2]}")
        elif event == setting and arguments[1] in names_of_code and any(arguments[0] is one for one in functions):
            raise PermissionError("an answer may not replace the code of the fence around it")

    def reading(where: str) -> None:
        """Refuse to read the teacher's files."""
        if f"{where}{separator}".startswith(secret) and not f"{where}{separator}".startswith(inside):
            raise PermissionError(f"an answer may not read the teacher's files, such as {where}")

    def writing(where: str, event: str) -> None:
        """Refuse to change a file outside."""
        if not where or f"{where}{separator}".startswith(inside) or where.endswith("/:memory:"):
            return
        if where.startswith("/dev/") and not where.startswith("/dev/shm/"):
            return
        raise PermissionError(f"{event} of {where}: {may}")

    def signalling(target: int, number: int) -> None:
        """Refuse to signal a process that this one did not start."""
        is_own = target in (0, own_pid(), own_group(0)) or (target > 0 and is_below(target))
        if not is_own and number != 0 and is_linux:
            raise PermissionError(f"an answer may not send a signal to a process that it did not start ({target})")

    def bounding(what: int, new: Any) -> None:
        """Refuse to raise a limit, which the operating system allows to an administrator's process."""
        own, hard = getrlimit(what)[1], tuple(new)[1]
        if own != unlimited and (hard == unlimited or hard > own):
            raise PermissionError("an answer may not raise the limits of its process")

    def starting() -> None:
        """Refuse to start more than MOST_STARTED processes."""
        count = int.from_bytes(started[:8], "little")
        if count >= most:
            raise PermissionError(f"an answer may not start more than {most} processes")
        started[:8] = (count + 1).to_bytes(8, "little")

    functions = (hook, reading, writing, signalling, bounding, starting, place, is_below)
    return hook


def place_finder() -> Callable[[Any, Any, bool], str]:
    """A function that resolves a path with its symbolic links. It uses local names only.

    Its arguments: the path, the descriptor of the folder to which it is relative or -1, and whether the path itself is
    followed if it is a link. It returns "" for a path that cannot be resolved: the working folder may be gone.
    """
    decoded, linked, separator = os.fsdecode, os.readlink, os.sep
    is_absolute, joined, real, split = os.path.isabs, os.path.join, os.path.realpath, os.path.split

    def place_of(path: Any, folder: Any, is_followed: bool) -> str:
        try:
            name = decoded(path)
            if isinstance(folder, int) and folder >= 0 and not is_absolute(name):
                name = joined(linked(f"/proc/self/fd/{folder}"), name)
            if is_followed:
                return real(name)
            parent, last = split(name.rstrip(separator) or separator)
            return joined(real(parent), last)
        except OSError:
            return ""

    return place_of


def descent(ancestor: int) -> Callable[[int], bool]:
    """A function that says whether a process is below `ancestor` (Linux). It uses local names only."""
    opened, read, close, reading, number, failure = os.open, os.read, os.close, os.O_RDONLY, int, OSError

    def is_below(process: int) -> bool:
        while process > 1:
            try:
                file = opened(f"/proc/{process}/stat", reading)
                status = read(file, 1000)
                close(file)
            except failure:
                return False
            process = number(status.rpartition(b")")[2].split()[1])  # a name may hold brackets
            if process == ancestor:
                return True
        return False

    return is_below


def fork_uncounted() -> int:
    """os.fork for processes that a check starts, which do not count toward MOST_STARTED."""
    return os.fork()


def no_input(prompt: object = "") -> NoReturn:
    """Replaces Python's `input`."""
    raise RuntimeError("an answer cannot ask with input(): it is called by the check, and nobody is there to type")
