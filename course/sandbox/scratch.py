"""A folder of its own in which a student's code runs, and which goes when the check is over.

Standard library only: `supervisor.py` imports this file alone.
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
"""How the names of all these folders begin: an answer may not read that of another one."""

MOST_WRITTEN = 10_000
"""Files and folders that it may come to hold."""

DEEPEST = 100
"""Folders in folders."""


class Scratch:
    """`folder`: the working folder, `temporary`: for temporary files, `settings`: for those of IPython."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix=prefix(os.getpid())))
        self.folder, self.temporary, self.settings = (self.root / name for name in ("work", "tmp", "ipython"))
        for folder in (self.folder, self.temporary, self.settings):
            folder.mkdir()

    def is_fuller_than(self, nbytes: int) -> bool:
        """Whether it holds more bytes than that, or more files than can be counted, or folders too deep to be seen."""
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
            except FileNotFoundError:  # it has gone meanwhile
                continue
            except OSError:  # the student's code has taken the right to look into it, or its path is too long
                return True
        return total > nbytes

    def remove(self) -> None:
        """Remove it, with all that is in there."""
        remove(self.root)


def prefix(process: int) -> str:
    """How the names begin of the folders that a process makes."""
    return f"{PREFIX}{process}-"


def blocks(entry: os.DirEntry[str]) -> int:
    """The bytes that a file takes on the disk."""
    try:
        return entry.stat(follow_symlinks=False).st_blocks * 512
    except OSError:  # it has gone meanwhile
        return 0


def remove(root: str | os.PathLike[str]) -> None:
    """Remove a scratch folder, whatever rights the student's code has given to what is in there, and however deep.

    Folders in folders are moved up until all are in `root`, so that no path is too long. Nothing outside is touched: a
    link is removed, and never followed. What then is left cannot be helped.
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
                    made_removable(entry.path)  # or it could not be moved
                    os.rename(entry.path, place := next(names))
                    folders.append(place)
        if folder != top:
            with contextlib.suppress(OSError):
                os.rmdir(folder)
    with contextlib.suppress(OSError):
        os.rmdir(top)


def made_removable(folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder, whose entries can be removed from now on."""
    with contextlib.suppress(OSError):
        os.chmod(folder, stat.S_IRWXU)
        return list(os.scandir(folder))
    return []
