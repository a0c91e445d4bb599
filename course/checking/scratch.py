"""A folder of its own in which a student's code runs, and which goes when the check is over.

Standard library only: `supervisor.py` imports this file alone.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_WRITTEN = 10_000
"""Files and folders that it may come to hold."""


class Scratch:
    """`folder`: the working folder, `temporary`: for temporary files, `settings`: for those of IPython."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix=prefix(os.getpid())))
        self.folder, self.temporary, self.settings = (self.root / name for name in ("work", "tmp", "ipython"))
        for folder in (self.folder, self.temporary, self.settings):
            folder.mkdir()

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
        """Remove it, with all that is in there."""
        remove(self.root)


def prefix(process: int) -> str:
    """How the names begin of the folders that a process makes."""
    return f"minidl-answer-{process}-"


def remove(root: str | os.PathLike[str]) -> None:
    """Remove a scratch folder, whatever rights the student's code has given to what is in there."""
    shutil.rmtree(root, onerror=_with_rights)


def _with_rights(function: Callable[[str], Any], path: str, _: Any) -> None:
    """Take the right to remove something, and try again; what then is left cannot be helped."""
    try:
        os.chmod(os.path.dirname(path), stat.S_IRWXU)
        os.chmod(path, stat.S_IRWXU)
        function(path)
    except OSError:
        return
