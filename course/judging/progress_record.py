"""A student's results in `work/progress.json`: the last outcome of each exercise, by chapter."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from course.judging.outcome import Outcome
from course.setup.bootstrap import ROOT
from course.whole_file import replace

WORK = ROOT / "work"

LOCK_SECONDS = 5.0


def keep(chapter: str, outcomes: Sequence[Outcome], work: Path = WORK) -> None:
    """Record outcomes if the current folder is `work/<chapter>`, as in a notebook there."""
    if Path.cwd().resolve() == (work / chapter).resolve():
        store(chapter, outcomes, work)


def store(chapter: str, outcomes: Sequence[Outcome], work: Path = WORK) -> None:
    """Record outcomes in `work/progress.json`, atomically. If that fails, print why and go on."""
    path = work / "progress.json"
    try:
        with FileLock(f"{path}.lock", timeout=LOCK_SECONDS):
            record = read(work)
            if not record and path.exists() and path.stat().st_size > 2:
                os.replace(path, path.with_suffix(".damaged.json"))
                print(f"{path} was damaged and begins anew; the old one is now {path.stem}.damaged.json.")
            now = datetime.now().isoformat(timespec="seconds")
            rows = record.setdefault(chapter, {})
            for outcome in outcomes:
                rows[outcome.exercise] = {
                    "status": outcome.status.value, "points": outcome.points, "possible": outcome.possible, "when": now,
                }  # fmt: skip
            replace(path, json.dumps(record, indent=1).encode())
    except Timeout:
        print(f"This result was not kept: another process has held {path}.lock for {LOCK_SECONDS:g} seconds.")
    except OSError as error:
        print(f"This result was not kept: {path} cannot be written ({error}).")


def read(work: Path = WORK) -> dict[str, dict[str, dict[str, Any]]]:
    """The record, `{chapter: {exercise: {"status", "points", "possible", "when"}}}`; empty if there is none."""
    try:
        record = json.loads((work / "progress.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    is_whole = isinstance(record, dict) and all(
        isinstance(rows, dict) and all(is_row(row) for row in rows.values()) for rows in record.values()
    )
    return record if is_whole else {}


def is_row(row: Any) -> bool:
    """Whether a value in the file is a row that `store` writes for an exercise."""
    if not isinstance(row, dict) or not isinstance(row.get("status"), str):
        return False
    return all(isinstance(row.get(name), int | float) for name in ("points", "possible"))
