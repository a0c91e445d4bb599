"""The files that students handed in. Links are never followed: one may lead to a solution or to a classmate's file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from course.judging.helper_files import is_notebook

NEVER = {".ipynb_checkpoints", ".git", "__MACOSX", "__pycache__", ".DS_Store", "Thumbs.db", "desktop.ini"}
LEFTOVERS = ("._", ".~", "~$")
"""What operating systems and editors leave in a folder: whole names, and beginnings of names."""

OTHER_ARCHIVES = {".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar"}

ANSWERS = {".zip", *OTHER_ARCHIVES, ".doc", ".docx", ".odt", ".pages", ".pdf", ".rtf"}
"""Beside a notebook, these may hold answers that are not in it; other files may be data and modules that it reads."""


@dataclass(frozen=True)
class Entry:
    """A file in a folder of submissions, or a folder without files.

    path: the path; for a file in an archive the archive's path, followed by that within it.
    problem: why it is not read; empty if it can be.
    remark: what is odd about it.
    file: where it is unpacked, if it is in an archive.
    """

    path: Path
    problem: str = ""
    remark: str = ""
    file: Path | None = None

    @property
    def is_notebook(self) -> bool:
        """Whether the name is that of a notebook."""
        return is_notebook(self.path.name)


def is_left_behind(name: str) -> bool:
    """Whether a system or an editor made this file or folder, and not a student."""
    return name in NEVER or name.startswith(LEFTOVERS)


def entries_in(folder: Path) -> Iterator[Entry]:
    """The files under a folder, and folders without files, ordered by name."""
    try:
        with os.scandir(folder) as listing:
            inside = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        yield Entry(folder, f"the folder cannot be read: {error.strerror}")
        return
    for entry in inside:
        if is_left_behind(entry.name):
            continue
        path = Path(entry.path)
        if is_folder(entry):
            within = list(entries_in(path)) if len(path.parts) < MOST_FOLDERS else [Entry(path, TOO_DEEP)]
            yield from within or [Entry(path)]
        elif problem := problem_of(entry):
            yield Entry(path, problem)
        else:
            yield Entry(path, remark=remark_on(entry))


MOST_FOLDERS = 200
TOO_DEEP = f"it is more than {MOST_FOLDERS} folders deep"


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder, not a link to one."""
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def problem_of(entry: os.DirEntry[str]) -> str:
    """Why it is not read; "" for a regular file."""
    try:
        if entry.is_symlink():
            return f"it is a link, to {os.readlink(entry.path)[:200]!r}, and links are not followed: hand in the file"
        return "" if entry.is_file(follow_symlinks=False) else "it is not a file, but a device, a pipe or a socket"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def remark_on(entry: os.DirEntry[str]) -> str:
    """What is odd about a file that can be read."""
    try:
        names = entry.stat(follow_symlinks=False).st_nlink
    except OSError:
        return ""
    return f"the file has {names} names (hard links)" if names > 1 and is_notebook(entry.name) else ""
