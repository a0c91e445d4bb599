"""Write a file whole or not at all: a reader sees the old content or the new one. Standard library only."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path


def replace(path: Path, content: bytes) -> None:
    """Write `content` to `path` in one step, whether or not the file exists; its folder is made if needed."""
    with unfinished(path, content) as new:
        os.replace(new, path)


def create(path: Path, content: bytes) -> None:
    """Write `content` to `path` in one step, unless a file of that name exists: that one is kept."""
    with unfinished(path, content) as new:
        try:
            with contextlib.suppress(FileExistsError):
                os.link(new, path)
        except OSError:  # a file system without hard links
            if not path.exists():
                os.replace(new, path)


@contextmanager
def unfinished(path: Path, content: bytes) -> Iterator[Path]:
    """A file with `content` in the folder of `path`; it is removed at the end unless it was renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    name = sha256(os.fsencode(path.name)).hexdigest()[:16]  # any file system takes a name of this length
    new = path.with_name(f".{name}.{os.getpid()}.part")
    try:
        new.write_bytes(content)
        yield new
    finally:
        new.unlink(missing_ok=True)
