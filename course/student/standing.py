"""How far a student is: for every chapter, its lectures and exercises, and the points so far."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course.chapters import CHAPTERS, Chapter
from course.judging import progress_record
from course.notebooks.roles import role_of
from course.student.own_copy import notebook

BAR = 20
"""Blocks in a bar of points."""


@dataclass(frozen=True)
class Standing:
    """A student's standing in a chapter.

    lectures: the number of lectures.
    points: the possible points of each exercise, by name, in order.
    by_hand: the possible points of the short answers, which the teacher grades.
    earned: the points so far of every exercise that was checked.
    started: whether the student has a copy in `work/`.
    """

    chapter: Chapter
    lectures: int
    points: dict[str, float]
    by_hand: float
    earned: dict[str, float]
    started: bool

    @property
    def total(self) -> float:
        """The points so far."""
        return sum(self.earned.values())

    @property
    def possible(self) -> float:
        """The points that the checks give."""
        return sum(self.points.values())

    @property
    def solved(self) -> int:
        """The number of exercises with all points."""
        return sum(self.earned.get(name, 0.0) >= points for name, points in self.points.items())

    @property
    def complete(self) -> bool:
        """Whether all exercises have all points."""
        return self.solved == len(self.points)

    @property
    def next_exercise(self) -> str:
        """The first exercise that lacks points; empty if none does."""
        return next((name for name, points in self.points.items() if self.earned.get(name, 0.0) < points), "")


def standings(root: Path) -> list[Standing]:
    """The standings in all chapters, including those that do not exist yet."""
    record = progress_record.read(root / "work")
    return [standing(chapter, root, record.get(chapter.name, {})) for chapter in CHAPTERS]


def standing(chapter: Chapter, root: Path, results: dict[str, dict[str, Any]]) -> Standing:
    """The standing in one chapter; results: the stored results of its exercises, by name."""
    points, by_hand = points_of(chapter.exercises(root))
    earned = {name: min(float(results[name]["points"]), most) for name, most in points.items() if name in results}
    lectures = len(chapter.lectures(root))
    return Standing(chapter, lectures, points, by_hand, earned, chapter.work(root).exists())


def points_of(exercises: Path) -> tuple[dict[str, float], float]:
    """The possible points of every exercise in a notebook, by name, and those of the short answers.

    Both are empty or 0 if the notebook is missing or damaged; `check` and `start` report that.
    """
    content = notebook(exercises)
    if content is None:
        return {}, 0.0
    points, by_hand = {}, 0.0
    for cell in content.cells:
        role = role_of(cell)
        if role.get("grade") and cell.cell_type == "code":
            points[role["grade_id"].removeprefix("check_")] = float(role["points"])
        elif role.get("grade"):
            by_hand += float(role["points"])
    return points, by_hand


def bar(points: float, possible: float) -> str:
    """The share of the points as twenty small blocks, filled and empty.

    >>> bar(5, 20)
    '█████░░░░░░░░░░░░░░░'
    """
    filled = int(BAR * points / possible) if possible else 0
    return "█" * filled + "░" * (BAR - filled)
