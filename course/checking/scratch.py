"""A folder of its own in which a student's code runs: a copy of where it lives, which goes when the check is over."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from importlib.machinery import PathFinder, all_suffixes
from pathlib import Path
from typing import Any

from course.bootstrap import ROOT

CODE = tuple(all_suffixes())
"""Endings of the files that Python imports."""

MOST_BYTES = 10 * 2**20
MOST_FILES = 100
"""What is copied into it."""

MOST_WRITTEN = 10_000
"""Files and folders that it may come to hold."""


class Scratch:
    """`folder`: the working folder, `temporary`: for temporary files, `settings`: for those of IPython.

    The helper files of `original` are copied into `folder`, so that an answer can read them, import them, and ruin
    nothing.
    """

    def __init__(self, original: Path | None) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="minidl-answer-"))
        self.folder, self.temporary, self.settings = (self.root / name for name in ("work", "tmp", "ipython"))
        for folder in (self.folder, self.temporary, self.settings):
            folder.mkdir()
        if original is not None:
            copy_small_files(original, self.folder)

    @property
    def stack(self) -> Path:
        """Where the process writes in which line it is, when it is asked."""
        return self.root / "stack"

    def is_fuller_than(self, nbytes: int) -> bool:
        """Whether it holds more bytes than that, or too many files to count."""
        count = total = 0
        for folder, folders, files in os.walk(self.root):
            count += len(folders) + len(files)
            if count > MOST_WRITTEN:
                return True
            for name in files:
                try:
                    total += os.lstat(os.path.join(folder, name)).st_blocks * 512
                except OSError:
                    continue
        return total > nbytes

    def remove(self) -> None:
        """Remove it, whatever rights the student's code has given to what is in there."""
        shutil.rmtree(self.root, onerror=_with_rights)


def copy_small_files(original: Path, folder: Path) -> None:
    """Copy a student's helper files, but those that shadow a module."""
    for name in helper_files(original):
        if not shadows(name):
            with contextlib.suppress(OSError):  # a file that this user may not read
                shutil.copyfile(original / name, folder / name, follow_symlinks=False)


def helper_files(folder: Path) -> list[str]:
    """The names of the files beside a notebook that its code may read: until there are 100, or 10 MB; the small ones
    first. Hidden files, notebooks and links are none, and folders are not looked into.
    """
    files = []
    try:
        for entry in os.scandir(folder):
            if entry.is_file(follow_symlinks=False) and not entry.name.startswith(".") and not is_notebook(entry.name):
                files.append((entry.stat(follow_symlinks=False).st_size, entry.name))
    except OSError:
        return []
    total, names = 0, []
    for size, name in sorted(files)[:MOST_FILES]:
        total += size
        if total > MOST_BYTES:
            break
        names.append(name)
    return names


def is_notebook(name: str) -> bool:
    """Whether a file's name is a notebook's."""
    return name.lower().endswith(".ipynb")


def shadows(name: str) -> bool:
    """Whether a file would be imported in place of a module of Python's, of the course's, or of an installed package.

    >>> shadows("random.py"), shadows("minidl.py"), shadows("mine.py"), shadows("random.txt")
    (True, True, False, False)
    """
    module, _, ending = name.partition(".")
    if not f".{ending}".endswith(CODE):
        return False
    if module in sys.stdlib_module_names or module in ("sitecustomize", "usercustomize"):
        return True
    places = [str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    found = PathFinder.find_spec(module, places)
    return found is not None and found.loader is not None


def _with_rights(function: Callable[[str], Any], path: str, _: Any) -> None:
    """Take the right to remove something, and try again; what then is left cannot be helped."""
    try:
        os.chmod(os.path.dirname(path), stat.S_IRWXU)
        os.chmod(path, stat.S_IRWXU)
        function(path)
    except OSError:
        return
