"""A folder of its own in which a student's code runs: a copy of where it lives, which goes when the check is over."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_BYTES = 10 * 2**20
MOST_FILES = 100
"""What is copied into it."""

MOST_WRITTEN = 10_000
"""Files and folders that it may come to hold."""


class Scratch:
    """`folder`: the working folder, `temporary`: for temporary files, `settings`: for those of IPython.

    The small files of `original` are copied into `folder` (its subfolders are not), so that an answer can read them,
    import them, and ruin nothing.
    """

    def __init__(self, original: Path | None) -> None:
        self.root = Path(tempfile.mkdtemp(prefix=f"minidl-answer-{os.getpid()}-"))
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
    """Copy files until there are 100, or 10 MB; the small ones first."""
    files = []
    try:
        for entry in os.scandir(original):
            if entry.is_file() and not entry.name.startswith("."):
                files.append((entry.stat().st_size, entry.name))
    except OSError:
        return
    left = MOST_BYTES
    for size, name in sorted(files)[:MOST_FILES]:
        left -= size
        if left < 0:
            return
        try:
            shutil.copyfile(original / name, folder / name)
        except OSError:  # a file that this user may not read
            continue


def _with_rights(function: Callable[[str], Any], path: str, _: Any) -> None:
    """Take the right to remove something, and try again; what then is left cannot be helped."""
    try:
        os.chmod(os.path.dirname(path), stat.S_IRWXU)
        os.chmod(path, stat.S_IRWXU)
        function(path)
    except OSError:
        return
