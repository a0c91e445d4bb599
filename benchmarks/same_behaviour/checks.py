"""Points and messages of `python3 -m course grade` for this checkout's solutions, exercises, and wrong notebooks."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from .exact import without_addresses

ROOT = Path(__file__).resolve().parent.parent.parent
LIMIT = 400  # seconds
SECONDS_A_CALL = "60"  # so that a loaded machine changes no outcome


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The cases of this group: one run of the grader, whose rows are compared, and reports for students."""
    yield "grade", graded
    for student in ("solved", "wrong"):
        yield f"check, {student}", partial(checked, student, "01_backpropagation")
    yield "check, one exercise", partial(checked, "wrong", "04_messages_and_collectives", "ring_seconds")


def hand_in(folder: Path) -> None:
    """Write the class: a student with all solutions, one with nothing done, one who returns 0 everywhere."""
    for path in sorted((ROOT / "solutions").glob("*/*.ipynb")):
        solution = path.read_text(encoding="utf-8")
        exercise = (ROOT / "exercises" / path.parent.name / path.name).read_text(encoding="utf-8")
        for student, text in (("solved", solution), ("unsolved", exercise), ("wrong", returning_zero(solution))):
            target = folder / student / path.parent.name / path.name
            target.parent.mkdir(parents=True)
            target.write_text(text, encoding="utf-8")


def returning_zero(notebook: str) -> str:
    """The notebook with solutions that compute what they should, and return 0."""
    content = json.loads(notebook)
    for cell in content["cells"]:
        if cell["cell_type"] == "code" and cell["metadata"].get("nbgrader", {}).get("solution"):
            source = "".join(cell["source"])
            cell["source"] = re.sub(r"^( +)return .+$", r"\1return 0", source, flags=re.M)
    return json.dumps(content)


def graded() -> Any:
    """The tables that the grader writes, row by row, and what it prints."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, to = Path(scratch) / "submitted", Path(scratch) / "graded"
        hand_in(folder)
        done = course("grade", str(folder), "--to", str(to), "--workers", "1", "--seconds", SECONDS_A_CALL)
        tables = {path.name: rows(path) for path in sorted(to.glob("*.csv"))}
        return {
            "exit code": done.returncode,
            "sentences": [line for line in said(done.stdout, scratch) if " s " not in f"{line} "],
            "tables": tables,
            "pages": sorted(str(path.relative_to(to)) for path in to.rglob("*.html")),
        }


def checked(student: str, assignment: str, *exercise: str) -> Any:
    """What a student reads of a notebook, without the line that says when it was saved."""
    with tempfile.TemporaryDirectory() as scratch:
        hand_in(Path(scratch))
        done = course("check", str(Path(scratch) / student / assignment / f"{assignment}.ipynb"), *exercise)
        lines = [line for line in said(done.stdout, scratch) if " ago" not in line]
        return {"exit code": done.returncode, "report": lines, "stderr": done.stderr.splitlines()}


def course(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of the course."""
    command = [sys.executable, "-P", "-m", "course", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)


def rows(table: Path) -> dict[str, dict[str, str]]:
    """The rows of a table, under what identifies each."""
    with table.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        names, read = (reader.fieldnames or [])[:3], list(reader)
    return {
        "/".join(row[name] for name in names): {key: without_addresses(value) for key, value in row.items()}
        for row in read
    }


def said(text: str, scratch: str) -> list[str]:
    """Printed lines without the scratch folder."""
    return without_addresses(text.replace(scratch, "")).splitlines()
