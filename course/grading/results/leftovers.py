"""Folders of answers that a killed run left behind."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import psutil

from course.sandbox import scratch
from course.whole_file import replace


def remove_leftovers(note: Path) -> None:
    """Remove the folders of the run that the file `note` names, if it has ended; then write this run into `note`."""
    try:
        before = json.loads(note.read_text(encoding="utf-8"))
        pid, folder = int(before["process"]), Path(before["folder"])
    except (OSError, ValueError, TypeError, KeyError):
        pid = 0
    if pid and not psutil.pid_exists(pid):
        for left in folder.glob(f"{scratch.prefix(pid)}*"):
            scratch.remove(left)
    replace(note, json.dumps({"process": os.getpid(), "folder": tempfile.gettempdir()}).encode())
