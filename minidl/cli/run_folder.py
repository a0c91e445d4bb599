"""The folder that a run is kept in: a new one, or the one of the run that goes on."""

from __future__ import annotations

import tempfile
import time
from itertools import count
from pathlib import Path

from minidl.parallel.run.checkpoint import CHECKPOINT_FILE

RUNS = Path("runs")


def prepare(folder: Path | None, name: str, resume: Path | None) -> Path:
    """`folder`, or a new one below runs/ with `name` and the time in its own; made, and known to take files.

    Errors: ValueError if it holds another run than that of the checkpoint `resume`; OSError if it cannot be made or
    written.
    """
    try:
        if folder is None:
            folder = _make_new(name)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):  # permissions do not tell all: root has them on read-only disks too
            pass
    except OSError as error:
        folder = folder or RUNS
        why = "it is a file" if folder.is_file() else error.strerror
        raise OSError(f"cannot write into the run folder {folder} ({why}): choose another with --out") from error
    checkpoint = folder / CHECKPOINT_FILE
    if checkpoint.exists() and (resume is None or not checkpoint.samefile(resume)):
        raise ValueError(f"{folder} holds a run already: go on with it by --resume {folder}, or choose another --out")
    return folder


def what_is_left(folder: Path) -> str:
    """What to say about a command that was stopped; a folder in which there is nothing is removed."""
    if any(folder.iterdir()):
        return f"Stopped; what had run by then is in {folder}."
    folder.rmdir()
    return "Stopped before anything had run to its end."


def _make_new(name: str) -> Path:
    """runs/NAME-DATE-TIME, with a number where another run began in the same second."""
    RUNS.mkdir(exist_ok=True)
    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    while True:
        try:
            (folder := RUNS / next(names)).mkdir()
        except FileExistsError:
            continue
        return folder
