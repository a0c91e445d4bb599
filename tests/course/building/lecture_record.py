"""Which lectures have run as they are now: a lecture runs again once anything has changed that its outputs depend on.

The record is in pytest's cache, so a fresh clone runs every lecture, and `pytest --cache-clear` forgets.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

from course.building.sources import Source

PACKAGES = ("minidl", "course")
"""What a lecture imports, by itself or through its ranks. All of it counts: ranks and cells import at run time."""

TEXTS = ("course/lectures", "course/assignments")
"""Parts of these packages that no lecture imports."""

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
    """A hash of the text, its notebook, the packages that it imports, Python, and what is installed."""
    parts = [contents(source.path), contents(source.executed), packages(source.root), environment()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@cache
def packages(root: Path) -> str:
    """A hash of every file that a lecture can import, data included."""
    hashed = hashlib.sha256()
    for path in imported(root):
        hashed.update(f"{path.relative_to(root).as_posix()} {contents(path)}\n".encode())
    return hashed.hexdigest()


def imported(root: Path) -> Iterator[Path]:
    """The files of the packages, without the texts, in a fixed order."""
    texts = [root / name for name in TEXTS]
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*")):
            if path.is_file() and not set(path.parts) & set(MADE) and not set(path.parents) & set(texts):
                yield path


def contents(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def environment() -> str:
    """The interpreter, the kind of machine, the installed versions, and the settings of minidl and numba."""
    installed = sorted({f"{found.name}=={found.version}" for found in metadata.distributions()})
    settings = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith(("MINIDL_", "NUMBA_")))
    return "\n".join([sys.version, platform.platform(), *installed, *settings])
