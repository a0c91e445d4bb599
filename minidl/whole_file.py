"""Write a file whole or not at all: a reader sees the old content or the new one, never half of it."""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def written_whole(path: Path, mode: str = "wb", **options: Any) -> Iterator[IO[Any]]:
    """Yield a file that becomes `path` at the end of the block, and is removed if the block raises.

    Parameters
        mode       "wb" or "w"
        options    passed to `open`, such as encoding
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open(mode, **options) as file:
            yield file
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):  # it was renamed, or never created
            temporary.unlink()


def remove_unfinished(path: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote `path`."""
    for temporary in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        temporary.unlink(missing_ok=True)
