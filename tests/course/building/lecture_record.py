"""Which lectures have run as they are now: a lecture runs again once anything has changed that its outputs depend on.

The record is in pytest's cache, so a fresh clone runs every lecture, and `pytest --cache-clear` forgets.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

from course.building.imports import imported, modules_in
from course.building.sources import Source

PACKAGES = ("minidl", "course")
"""What a lecture imports, by itself or through its ranks."""

TEXTS = ("course/lectures", "course/assignments")
"""Parts of these packages that no lecture imports."""

BY_NAME = ("minidl/kernels", "minidl/cluster/engines", "course/building/execution.py")
"""What is imported by a name that is known at run time only, and what runs the lectures: it counts for all."""

MADE = ("__pycache__", ".ipynb_checkpoints")


def has_run(source: Source, cache_of_pytest: pytest.Cache | None) -> bool:
    """Whether the lecture ran, and showed what its notebook shows, when everything was as it is now."""
    return cache_of_pytest is not None and cache_of_pytest.get(place(source), None) == fingerprint(source)


def note(source: Source, cache_of_pytest: pytest.Cache | None) -> None:
    """Record that the lecture has just run and shown what its notebook shows."""
    if cache_of_pytest is not None:
        cache_of_pytest.set(place(source), fingerprint(source))


def place(source: Source) -> str:
    """Where the record of a lecture is in pytest's cache."""
    return f"lectures/{source.name}"


def fingerprint(source: Source) -> str:
    """A hash of the text, its notebook, the files that it imports, all data files, Python, and what is installed."""
    files = sorted({*imports_of(source), *(name for name in packages(source.root) if not name.endswith(".py"))})
    hashes = [f"{name} {packages(source.root)[name]}" for name in files]
    parts = [contents(source.path), contents(source.executed), *hashes, environment()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def imports_of(source: Source) -> set[str]:
    """The files of the packages that a lecture imports anywhere, directly or indirectly."""
    program, known = source.path.read_text(encoding="utf-8"), packages(source.root)
    starts = imported(str(source), program, known)
    # `from course import progress` is a command (course/__init__.py)
    starts |= known.keys() & {f"{name.replace('.', '/commands/')}.py" for name in modules_in(program)}
    by_name = BY_NAME if source.is_lecture else (*BY_NAME, "course/judging", "course/sandbox", "course/probes")
    starts |= {name for name in known if name.startswith(by_name)}
    found, waiting = set(), list(starts)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += imports_in(source.root, name)
    return found


@cache
def packages(root: Path) -> dict[str, str]:
    """The files of the packages and their hashes, data included, without the texts."""
    texts = {root / name for name in TEXTS}
    return {
        path.relative_to(root).as_posix(): contents(path)
        for package in PACKAGES
        for path in sorted((root / package).rglob("*"))
        if path.is_file() and not set(path.parts) & set(MADE) and not set(path.parents) & texts
    }


@cache
def imports_in(root: Path, name: str) -> set[str]:
    """What a file of the packages imports of them."""
    return imported(name, (root / name).read_text(encoding="utf-8"), packages(root)) if name.endswith(".py") else set()


def contents(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def environment() -> str:
    """The interpreter, the kind of machine, the installed versions, and the settings of minidl and numba."""
    installed = sorted({f"{found.name}=={found.version}" for found in metadata.distributions()})
    settings = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(("MINIDL_", "NUMBA_")))
    return "\n".join([sys.version, platform.platform(), *installed, *settings])
