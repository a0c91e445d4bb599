"""Grades as CSV: a row a submission, and a row an exercise of each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat

from course.building.release import settings
from course.checking import Status
from course.grading.judged_notebook import Judgement
from course.grading.roles import role_of, with_roles

BY_HAND = "to be graded by hand"

COLUMNS = ("student", "assignment", "points", "of", "by_hand_of", "remarks")
EXERCISE_COLUMNS = ("student", "assignment", "exercise", "outcome", "points", "of", "message")
"""Of grades.csv and exercises.csv."""


@dataclass(frozen=True)
class Grade:
    """What a submission got: judged automatically, and what waits for the teacher (name, points, the answer's text)."""

    student: str
    assignment: str
    judgement: Judgement
    by_hand: Sequence[tuple[str, float, str]]

    @property
    def row(self) -> dict[str, Any]:
        """Its row in grades.csv."""
        return {
            "student": self.student,
            "assignment": self.assignment,
            "points": self.judgement.points,
            "of": self.judgement.possible,
            "by_hand_of": sum(points for _, points, answer in self.by_hand if answer),
            "remarks": "; ".join(self.judgement.remarks),
        }

    @property
    def exercise_rows(self) -> Iterable[dict[str, Any]]:
        """Its rows in exercises.csv."""
        one = {"student": self.student, "assignment": self.assignment}
        for outcomes in self.judgement.outcomes.values():
            outcome = outcomes[-1]
            fault = outcome.first_fault
            yield one | {
                "exercise": outcome.exercise, "outcome": outcome.status.value, "points": outcome.points,
                "of": outcome.possible, "message": fault.message if fault else "",
            }  # fmt: skip
        for name, points, answer in self.by_hand:
            outcome, earned = (BY_HAND, "") if answer else (Status.NOT_ATTEMPTED.value, 0.0)
            yield one | {"exercise": name, "outcome": outcome, "points": earned, "of": points, "message": answer}


def answers_by_hand(student: nbformat.NotebookNode, reference: nbformat.NotebookNode) -> list[tuple[str, float, str]]:
    """Name, points and text of the answers that a person has to read; "" where nothing was written."""
    stub = settings().ClearSolutions.text_stub.strip()
    student = with_roles(student, reference)
    texts: dict[str, list[str]] = {}
    for cell in student.cells:
        name = role_of(cell).get("grade_id")
        if name and cell.source.strip() not in ("", stub):
            texts.setdefault(name, []).append(cell.source)  # a cell may have been copied, or split
    return [
        (role["grade_id"], float(role["points"]), "\n\n".join(texts.get(role["grade_id"], [])))
        for role in map(role_of, reference.cells)
        if role.get("grade") and role.get("solution")
    ]


def write(rows: Iterable[Mapping[str, Any]], path: Path, columns: Sequence[str]) -> Path | None:
    """A CSV file that spreadsheets open as text, in UTF-8: no cell of it is ever taken for a formula.

    What was there before, if it was something else, is kept beside it, since a teacher may have written into it;
    returns where.
    """
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=columns)
    writer.writeheader()
    writer.writerows({name: harmless(value) for name, value in row.items()} for row in rows)
    content = text.getvalue().encode("utf-8-sig", "backslashreplace")  # without the mark, Excel takes it for Latin-1
    kept = None
    if path.exists() and path.read_bytes() != content:
        written = datetime.fromtimestamp(path.stat().st_mtime)
        kept = path.with_name(f"{path.stem}.{written:%Y-%m-%d.%H%M%S}{path.suffix}")
        path.replace(kept)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return kept


def harmless(value: Any) -> Any:
    """A text that begins as formulas do gets an apostrophe in front (OWASP, CSV injection)."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
