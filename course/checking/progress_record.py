"""A student's results, kept in `work/progress.json`: by chapter and exercise, the last outcome of each."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock

from course.bootstrap import ROOT
from course.checking.outcome import Outcome

WORK = ROOT / "work"


def keep(chapter: str, outcomes: Sequence[Outcome], work: Path = WORK) -> None:
    """Note outcomes, if this process works in the folder `work/<chapter>` (a notebook there, or `check`)."""
    if Path.cwd().resolve() != (work / chapter).resolve():
        return
    store(chapter, outcomes, work)


def store(chapter: str, outcomes: Sequence[Outcome], work: Path = WORK) -> None:
    """Note outcomes in `work/progress.json`, whole or not at all."""
    path = work / "progress.json"
    with FileLock(str(path) + ".lock"):
        record = read(work)
        now = datetime.now().isoformat(timespec="seconds")
        for outcome in outcomes:
            row = {"status": outcome.status.value, "points": outcome.points, "possible": outcome.possible, "when": now}
            record.setdefault(chapter, {})[outcome.exercise] = row
        new = path.with_suffix(".tmp")
        new.write_text(json.dumps(record, indent=1), encoding="utf-8")
        os.replace(new, path)


def read(work: Path = WORK) -> dict[str, dict[str, dict[str, Any]]]:
    """What is known: `{chapter: {exercise: {"status", "points", "possible", "when"}}}`; empty if nothing is."""
    try:
        record = json.loads((work / "progress.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}
