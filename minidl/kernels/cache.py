"""Where numba keeps the compiled kernels on disk; found without importing numba, which takes half a second."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import sys
from pathlib import Path

from minidl.instruction_set import processor

SOURCES = Path(__file__).parent / "jit"

ALL = "all"
"""Instead of a model's name: all kernels that the models of `nn.models` call."""

MODEL_VARIABLE = "MINIDL_WARM_UP"
"""The environment variable with the name of the model whose kernels the ranks of a launch will call; default ALL."""


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


def is_filled(model: str = ALL) -> bool:
    """Whether the kernels of this model, or of all, have been compiled here since their sources last changed."""
    stamp = _stamp()
    notes = [_note(model), _note(ALL)]
    return any(file is not None and file.is_file() and file.read_text() == stamp for file in notes)


def note(model: str) -> None:
    """Record in numba's folder that this model's kernels are compiled; do nothing if the folder is read-only."""
    file = _note(model)
    if file is not None and not is_filled(model):
        with contextlib.suppress(OSError):
            file.write_text(_stamp())


def _note(model: str) -> Path | None:
    there = files()
    return Path(there[0]).with_name(f"compiled_{model}.txt") if there else None


def _stamp() -> str:
    """What numba's files depend on: the sources, and the instructions for which they are compiled."""
    from importlib.metadata import version  # takes longer to import than all else here

    sources = sorted((path.name, path.stat().st_mtime, path.stat().st_size) for path in SOURCES.glob("*.py"))
    target = [os.environ.get(name) for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")]
    here = processor()
    return repr((sys.version, version("numba"), target, here and (*here[:3], sorted(here.features)), sources))


def folder_of(sources: Path) -> str:
    """Numba's name, below NUMBA_CACHE_DIR, of the folder for compiled functions of the modules in `sources`."""
    return f"{sources.name}_{hashlib.sha1(str(sources).encode()).hexdigest()}"
