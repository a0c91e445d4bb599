"""The folder in which a student's code runs, removed after the check.

Standard library only: `supervisor.py` imports this file by its path.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import stat
import tempfile
from pathlib import Path

PREFIX = "minidl-answer-"
"""The beginning of the names of all these folders; an answer may not read the folder of another one."""

MOST_WRITTEN = 10_000
"""Files and folders that it may contain."""

DEEPEST = 100
"""Levels of nested folders."""


class Scratch:
    """A new scratch folder `root` with subfolders: `folder` to work in, `temporary`, and `settings` of IPython."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix=prefix(os.getpid())))
        self.folder, self.temporary, self.settings = (self.root / name for name in ("work", "tmp", "ipython"))
        for folder in (self.folder, self.temporary, self.settings):
            folder.mkdir()

    def is_fuller_than(self, nbytes: int) -> bool:
        """Whether it has more than `nbytes` bytes or MOST_WRITTEN files, or folders that are too deep or unreadable."""
        count = total = 0
        folders = [(os.fspath(self.root), 0)]
        while folders:
            folder, depth = folders.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        count += 1
                        if entry.is_dir(follow_symlinks=False):
                            folders.append((entry.path, depth + 1))
                        else:
                            total += blocks(entry)
                        if count > MOST_WRITTEN or depth > DEEPEST:
                            return True
            except FileNotFoundError:  # it was removed in the meantime
                continue
            except OSError:  # the student's code has removed the right to read it, or its path is too long
                return True
        return total > nbytes

    def remove(self) -> None:
        """Remove it with everything in it."""
        remove(self.root)


def prefix(process: int) -> str:
    """The beginning of the names of the folders that a process makes."""
    return f"{PREFIX}{process}-"


def blocks(entry: os.DirEntry[str]) -> int:
    """The bytes that a file uses on the disk."""
    try:
        return entry.stat(follow_symlinks=False).st_blocks * 512
    except OSError:  # it was removed in the meantime
        return 0


def remove(root: str | os.PathLike[str]) -> None:
    """Remove a scratch folder, for any access rights that the student's code has set in it, and any depth.

    Nested folders are moved up into `root`, so that no path is too long. Nothing outside is changed: a link is removed
    and never followed. Errors are ignored.
    """
    top = os.fspath(root)
    names = (os.path.join(top, f"moved-{secrets.token_hex(8)}-{number}") for number in itertools.count())
    folders = [top]
    while folders:
        folder = folders.pop()
        for entry in made_removable(folder):
            with contextlib.suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                elif folder == top:
                    folders.append(entry.path)
                else:
                    made_removable(entry.path)  # else it could not be moved
                    os.rename(entry.path, place := next(names))
                    folders.append(place)
        if folder != top:
            with contextlib.suppress(OSError):
                os.rmdir(folder)
    with contextlib.suppress(OSError):
        os.rmdir(top)


def made_removable(folder: str) -> list[os.DirEntry[str]]:
    """The entries of a folder, after its rights were set so that they can be removed."""
    with contextlib.suppress(OSError):
        os.chmod(folder, stat.S_IRWXU)
        return list(os.scandir(folder))
    return []
