"""The caches of numba and matplotlib: an answer reads those of this user, and writes into its own folder.

Other processes run what is in numba's cache, compiled kernels, so an answer must not write there.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import minidl
from course.sandbox.cells.kept_kernels import KEPT, link
from minidl.kernels import cache

NUMBA, MATPLOTLIB = "numba", "matplotlib"
"""Folders in the scratch folder."""

OWN = "course.sandbox.cells.cell_cache"
LOCATORS = f"{OWN}.OfTheLibrary,InTreeCacheLocator,UserWideCacheLocator,{OWN}.OfACell"
"""The classes that numba asks for a cache folder, in order."""

LONGEST = 300.0
"""Seconds to wait while another process fills the caches."""

WARM_UP = """
import contextlib
with contextlib.suppress(ImportError):
    import IPython.core.interactiveshell, matplotlib.pyplot
with contextlib.suppress(ImportError):
    from minidl.kernels.jit.first_calls import warm_up
    warm_up()
"""


def environment(scratch: Path) -> dict[str, str]:
    """Environment variables that put the caches into `scratch`, where links lead to the existing entries."""
    link(files_of_matplotlib(), scratch / MATPLOTLIB)
    return {
        "NUMBA_CACHE_DIR": str(scratch / NUMBA),
        "NUMBA_CACHE_LOCATOR_CLASSES": LOCATORS,
        KEPT: next(map(os.path.dirname, cache.files()), ""),
        "MPLCONFIGDIR": str(scratch / MATPLOTLIB),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def files_of_matplotlib() -> list[str]:
    """Matplotlib's settings file and its list of fonts, which takes seconds to make."""
    if own := os.environ.get("MPLCONFIGDIR"):
        folders = [own]
    elif sys.platform == "linux":
        cache_home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        config_home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
        folders = [os.path.join(cache_home, MATPLOTLIB), os.path.join(config_home, MATPLOTLIB)]
    else:
        folders = [os.path.expanduser("~/.matplotlib")]
    found: dict[str, str] = {}
    for folder in folders:
        for name in ("matplotlibrc", "fontlist-*.json"):
            for file in glob.glob(os.path.join(glob.escape(folder), name)):
                found.setdefault(os.path.basename(file), file)
    return list(found.values())


@functools.cache
def fill() -> None:
    """Fill the caches with what answers need, since answers cannot; once a process, and only if not done before.

    It takes 2 s, or half a minute with an empty numba cache, and is repeated after the kernels have changed.
    """
    note = cache.SOURCES / "__pycache__" / f"filled_{hashlib.sha1(sys.prefix.encode()).hexdigest()[:8]}.txt"
    stamp = repr([sys.version, *((file.name, file.stat().st_mtime) for file in sorted(cache.SOURCES.glob("*.py")))])
    if is_written(stamp, note):
        return
    from filelock import FileLock, Timeout

    with contextlib.suppress(OSError, Timeout):  # this user may not write there, and so cannot fill a cache
        note.parent.mkdir(exist_ok=True)
        with FileLock(f"{note}.lock", timeout=LONGEST):
            if not is_written(stamp, note):
                subprocess.run([sys.executable, "-P", "-c", WARM_UP], env={**os.environ, "PYTHONPATH": path()},
                               check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)  # fmt: skip
                note.write_text(stamp)


def is_written(text: str, file: Path) -> bool:
    """Whether a file contains this text."""
    return file.exists() and file.read_text() == text


def path() -> str:
    """PYTHONPATH with this minidl first."""
    return os.pathsep.join([str(Path(minidl.__file__).parent.parent), *filter(None, sys.path)])
