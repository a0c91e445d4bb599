"""Grades as CSV: a row a submission, and a row an exercise of each."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from course.building.release import settings
from course.checking import Status
from course.grading.judged_notebook import Judgement, role_of

BY_HAND = "to be graded by hand"


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
    stub = settings().ClearSolutions.text_stub
    texts = {role_of(cell).get("grade_id"): cell.source for cell in student.cells}
    return [
        (role["grade_id"], float(role["points"]), "" if text.strip() == stub else text)
        for role in map(role_of, reference.cells)
        if role.get("grade") and role.get("solution")
        for text in [texts.get(role["grade_id"], "")]
    ]


def write(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """A CSV file that a spreadsheet opens as text: no cell of it is ever taken for a formula."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows({name: harmless(value) for name, value in row.items()} for row in rows)


def harmless(value: Any) -> Any:
    """A text that begins as formulas do gets an apostrophe in front (OWASP, CSV injection)."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
