"""The grade of a submission: points from the checks and from the teacher, and its rows in the two tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import nbformat

from course.judging import Outcome, Status
from course.judging.judged_notebook import Judgement
from course.notebooks.release import settings
from course.notebooks.roles import is_short_answer, role_of, with_roles

BY_HAND = "to be graded by hand"
CHECK_FAILED = "the check itself failed"

COLUMNS = (
    "student", "assignment", "points", "of", "by_hand", "by_hand_of", "to_read", "total", "total_of", "remarks",
)  # fmt: skip
EXERCISE_COLUMNS = ("student", "assignment", "exercise", "outcome", "points", "of", "message", "comment")
"""The columns of grades.csv and exercises.csv."""


@dataclass(frozen=True)
class Grade:
    """The points of a submission, from the checks and from the teacher.

    judgement: the outcomes of the checks.
    by_hand: the short answers: name, possible points, the student's text.
    given: the teacher's points by exercise, for a short answer or instead of those of a check.
    comments: the teacher's comments by exercise.
    remarks: what is odd about the teacher's points.
    """

    student: str
    assignment: str
    judgement: Judgement
    by_hand: Sequence[tuple[str, float, str]]
    given: Mapping[str, float] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)
    remarks: Sequence[str] = ()

    @property
    def points(self) -> float:
        """The points from the checks."""
        return self.judgement.points

    @property
    def possible(self) -> float:
        """The points that the checks can give."""
        return self.judgement.possible

    @property
    def checked(self) -> dict[str, float]:
        """The points from the checks, by exercise."""
        return {outcomes[-1].exercise: outcomes[-1].points for outcomes in self.judgement.outcomes.values()}

    @property
    def points_by_hand(self) -> float:
        """The teacher's points; where they replace those of a check, the difference."""
        return sum((points - self.checked.get(exercise, 0.0) for exercise, points in self.given.items()), 0.0)

    @property
    def possible_by_hand(self) -> float:
        """The points of all short answers."""
        return sum((points for _, points, _ in self.by_hand), 0.0)

    @property
    def to_read(self) -> int:
        """The number of short answers that the teacher has not graded yet."""
        return sum(bool(answer) and name not in self.given for name, _, answer in self.by_hand)

    @property
    def unfinished(self) -> list[str]:
        """The exercises whose check itself failed, and that have no points from the teacher."""
        last = (outcomes[-1] for outcomes in self.judgement.outcomes.values())
        return [one.exercise for one in last if one.defect and one.exercise not in self.given]

    @property
    def waiting(self) -> float:
        """The points of the short answers that the teacher has not graded yet."""
        return sum((points for name, points, answer in self.by_hand if answer and name not in self.given), 0.0)

    @property
    def total(self) -> float:
        """All points."""
        return self.points + self.points_by_hand

    @property
    def total_possible(self) -> float:
        """The points that the checks and the teacher can give."""
        return self.possible + self.possible_by_hand

    @property
    def row(self) -> dict[str, Any]:
        """Its row in grades.csv."""
        return {
            "student": self.student,
            "assignment": self.assignment,
            "points": self.points,
            "of": self.possible,
            "by_hand": self.points_by_hand,
            "by_hand_of": self.possible_by_hand,
            "to_read": self.to_read,
            "total": self.total,
            "total_of": self.total_possible,
            "remarks": "; ".join([*self.judgement.remarks, *self.remarks]),
        }

    @property
    def exercise_rows(self) -> Iterable[dict[str, Any]]:
        """Its rows in exercises.csv."""
        one = {"student": self.student, "assignment": self.assignment}
        for outcomes in self.judgement.outcomes.values():
            outcome = outcomes[-1]
            fault = outcome.first_fault
            yield one | {
                "exercise": outcome.exercise, "outcome": in_words(outcome),
                "points": self.given.get(outcome.exercise, outcome.points), "of": outcome.possible,
                "message": fault.message if fault else "", "comment": self.comments.get(outcome.exercise, ""),
            }  # fmt: skip
        for name, points, answer in self.by_hand:
            outcome, earned = (BY_HAND, "") if answer else (Status.NOT_ATTEMPTED.value, 0.0)
            earned = self.given.get(name, earned)
            yield one | {
                "exercise": name, "outcome": outcome, "points": earned, "of": points, "message": answer,
                "comment": self.comments.get(name, ""),
            }  # fmt: skip


def in_words(outcome: Outcome) -> str:
    """An outcome in a word or two."""
    return CHECK_FAILED if outcome.defect else outcome.status.value


def answers_by_hand(student: nbformat.NotebookNode, reference: nbformat.NotebookNode) -> list[tuple[str, float, str]]:
    """Name, points and text of the answers that a person has to read; the text is "" where nothing was written."""
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
        if is_short_answer(role)
    ]
