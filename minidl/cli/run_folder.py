"""The folder of a run: made, checked, and what is written into it."""

from __future__ import annotations

import tempfile
import time
from itertools import count
from pathlib import Path

from minidl.parallel.run.checkpoint import CHECKPOINT_FILE

RUNS = Path("runs")


def prepare(folder: Path | None, name: str, resume: Path | None = None) -> Path:
    """Make `folder`, or a new one in runs/ named by `name` and the time, and check that files can be written there.

    Raises
        ValueError  the folder holds another run than that of the checkpoint `resume`
        OSError     the folder cannot be made or written
    """
    try:
        if folder is None:
            folder = _make_new(name)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):  # permissions are not enough: root has them on read-only disks too
            pass
    except OSError as error:
        folder = folder or RUNS
        why = "it is a file" if folder.is_file() else error.strerror
        raise OSError(f"cannot write into the run folder {folder} ({why}): choose another with --out") from error
    checkpoint = folder / CHECKPOINT_FILE
    if checkpoint.exists() and (resume is None or not checkpoint.samefile(resume)):
        raise ValueError(f"{folder} holds a run already: go on with it by --resume {folder}, or choose another --out")
    return folder


def contents(folder: Path) -> str:
    """A line that names the folder and its files."""
    return f"In {folder}: {', '.join(sorted(path.name for path in folder.iterdir() if not path.name.startswith('.')))}"


def what_is_left(folder: Path) -> str:
    """A line that says what a stopped command has left in the folder; an empty folder is removed."""
    if any(folder.iterdir()):
        return f"Stopped; the runs that had finished by then are in {folder}."
    folder.rmdir()
    return "Stopped before any run had finished."


def _make_new(name: str) -> Path:
    """Make runs/NAME-DATE-TIME, with a number at the end if another run began in the same second."""
    RUNS.mkdir(exist_ok=True)
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in count(1):
        folder = RUNS / (stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        break
    return folder
