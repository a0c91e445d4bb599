"""Where numba keeps the compiled kernels on disk; found without importing numba, which takes half a second."""

from __future__ import annotations

import glob
import hashlib
import os
from pathlib import Path

SOURCES = Path(__file__).parent / "jit"


def files() -> list[str]:
    """The files of compiled kernels, in the places where numba looks for them (numba.core.caching)."""
    own, folder = os.environ.get("NUMBA_CACHE_DIR"), folder_of(SOURCES)
    users = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    places = (
        [os.path.join(own, folder)] if own else [str(SOURCES / "__pycache__"), os.path.join(users, "numba", folder)]
    )
    for place in places:
        if found := glob.glob(os.path.join(glob.escape(place), "*.nb[ic]")):
            return found
    return []


def is_filled() -> bool:
    """Whether kernels have been compiled since their sources last changed. Some may be missing; these are compiled
    when they are called.
    """
    changed = max(path.stat().st_mtime for path in SOURCES.glob("*.py"))
    return any(os.stat(file).st_mtime >= changed for file in files())


def folder_of(sources: Path) -> str:
    """Numba's name, below NUMBA_CACHE_DIR, of the folder for compiled functions of the modules in `sources`."""
    return f"{sources.name}_{hashlib.sha1(str(sources).encode()).hexdigest()}"
