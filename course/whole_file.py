"""A file is written whole or not at all: who reads it meanwhile finds the old one, and nobody half of a new one."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path


def replace(path: Path, content: bytes) -> None:
    """Put a file in the place of another, in one step; make its folder if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    name = sha256(os.fsencode(path.name)).hexdigest()[:16]  # any file system takes one of this length
    unfinished = path.with_name(f".{name}.{os.getpid()}.part")
    try:
        unfinished.write_bytes(content)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
