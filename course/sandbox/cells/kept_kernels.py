"""The compiled kernels that this user has kept: an answer reads them by links in its own folder, where it may write.

The links are made when numba first asks for a kernel: there are hundreds, and most answers need none.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Sequence
from pathlib import Path

from minidl.kernels import cache

KEPT = "MINIDL_KEPT_KERNELS"
"""The environment variable with the folder of the user's kernels; "" if there are none."""


def is_of_kernels(folder: str) -> bool:
    """Whether this is numba's folder for minidl's kernels."""
    return os.path.basename(folder) == cache.folder_of(cache.SOURCES)


def link_kept(folder: str) -> None:
    """Make this folder, with links to the kept kernels, unless it is there."""
    kept = os.environ.get(KEPT)
    if kept and not os.path.exists(folder):
        new = f"{folder}-{os.getpid()}"  # another process of the answer may do the same
        link(glob.glob(os.path.join(glob.escape(kept), "*.nb[ic]")), Path(new))
        with contextlib.suppress(OSError):
            os.rename(new, folder)


def link(files: Sequence[str], folder: Path) -> None:
    """Make a folder with links to files.

    Each link goes through one link to the file's folder, and so is short. A file system stores short links inside
    their directory entries, and removes a hundred of them in 3 ms instead of 300.
    """
    folder.mkdir(parents=True)
    there: dict[str, str] = {}
    for file in files:
        place, name = os.path.split(file)
        if place not in there:
            there[place] = f".{len(there)}"
            os.symlink(place, folder / there[place])
        os.symlink(f"{there[place]}/{name}", folder / name)
