"""The files next to a notebook that its code may read: helper modules, data, pictures."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import sysconfig
from importlib.machinery import PathFinder, all_suffixes
from pathlib import Path

from course.setup.bootstrap import ROOT

MOST_BYTES = 10 * 2**20
MOST_FILES = 100
"""At most this much is copied."""


def copy_helper_files(original: Path, folder: Path) -> None:
    """Copy a student's helper files, except those that shadow a module."""
    for name in helper_files(original):
        if not shadows(name):
            with contextlib.suppress(OSError):  # a file that this user may not read
                shutil.copyfile(original / name, folder / name, follow_symlinks=False)


def helper_files(folder: Path) -> list[str]:
    """The names of the files next to a notebook that its code may read, smallest first: at most 100 files and 10 MB.

    Hidden files, notebooks, links and folders are left out.
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
    """Whether a file name is that of a notebook."""
    return name.lower().endswith(".ipynb")


def shadows(name: str) -> bool:
    """Whether a file would be imported instead of a module of Python, of the course, or of an installed package.

    >>> shadows("random.py"), shadows("minidl.py"), shadows("mine.py"), shadows("random.txt")
    (True, True, False, False)
    """
    module, _, ending = name.partition(".")
    if not f".{ending}".endswith(tuple(all_suffixes())):
        return False
    if module in sys.stdlib_module_names or module in ("sitecustomize", "usercustomize"):
        return True
    places = [str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    found = PathFinder.find_spec(module, places)
    return found is not None and found.loader is not None
