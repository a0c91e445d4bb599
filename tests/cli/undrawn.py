"""Runs of the command that save their pictures as empty files, since drawing took half of the time of a short run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import minidl  # noqa: F401  (before matplotlib, which imports numpy, whose instruction set it chooses)

from matplotlib.figure import Figure  # isort: skip


def save_nothing(figure: Figure, path: Any, **_: object) -> None:
    """In place of `Figure.savefig`: the file is there, and empty."""
    Path(path).write_bytes(b"")


def is_in_place() -> bool:
    """Whether pictures are saved as empty files in this process; then they are in copies of the ready process too."""
    return Figure.savefig is save_nothing


def put_in_place() -> None:
    """Save no picture from now on."""
    Figure.savefig = save_nothing
