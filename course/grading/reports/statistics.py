"""What a class found hard: for every exercise and part, how many solved it, and why the others lost points."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from course.judging import Outcome, PartResult, Status
from course.judging.outcome import RAISED_IN

COLUMNS = (
    "assignment", "exercise", "part", "submissions", "got_it", "share_got_it", "mean_points", "of", "wrong",
    "raised_or_stuck", "not_attempted", "reason_1", "submissions_1", "reason_2", "submissions_2", "reason_3",
    "submissions_3",
)  # fmt: skip
"""The columns of statistics.csv; a row without a part is a whole exercise."""

LEFT_OVER = ("the rest", "the answer can be called", "the answer is right", "the check works")
"""Titles under which an interrupted check lists the points that it did not reach; they are no parts."""

NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d_]*\.?\d*(e[-+]?\d+)?")
LONGEST_REASON = 200


@dataclass
class Tally:
    """The results of a class in one part of an exercise; in the whole exercise if `part` is empty."""

    assignment: str
    exercise: str
    part: str
    possible: float
    points: list[float] = field(default_factory=list)
    statuses: Counter[Status] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def note(self, points: float, status: Status, reason: str) -> None:
        """Count one submission."""
        self.points.append(points)
        self.statuses[status] += 1
        if status is not Status.CORRECT:
            self.reasons[reason] += 1

    @property
    def count(self) -> int:
        return len(self.points)

    def share(self, *statuses: Status) -> float:
        """The share of submissions with one of these outcomes, from 0 to 1."""
        return sum(self.statuses[status] for status in statuses) / self.count

    @property
    def mean(self) -> float:
        return sum(self.points) / self.count

    @property
    def row(self) -> dict[str, Any]:
        """The row in statistics.csv."""
        reasons: dict[str, Any] = {}
        for place, (reason, count) in enumerate(self.reasons.most_common(3), 1):
            reasons |= {f"reason_{place}": reason, f"submissions_{place}": count}
        return {
            "assignment": self.assignment, "exercise": self.exercise, "part": self.part, "submissions": self.count,
            "got_it": self.statuses[Status.CORRECT], "share_got_it": round(self.share(Status.CORRECT), 3),
            "mean_points": round(self.mean, 3), "of": self.possible, "wrong": self.statuses[Status.WRONG],
            "raised_or_stuck": self.statuses[Status.RAISED] + self.statuses[Status.STUCK],
            "not_attempted": self.statuses[Status.NOT_ATTEMPTED],
        } | reasons  # fmt: skip


def tallies(judged: Iterable[tuple[str, Sequence[Outcome]]]) -> list[Tally]:
    """The results of a class: for every exercise, then for each of its parts.

    judged: for each submission that could be judged, the assignment and one outcome per exercise. Outcomes of checks
    that themselves failed are not counted.
    """
    by_exercise: dict[tuple[str, str], list[Outcome]] = {}
    for assignment, outcomes in judged:
        for outcome in (one for one in outcomes if not one.defect):
            by_exercise.setdefault((assignment, outcome.exercise), []).append(outcome)
    found = []
    for (assignment, exercise), outcomes in sorted(by_exercise.items(), key=lambda item: item[0][0]):
        whole = Tally(assignment, exercise, "", outcomes[0].possible)
        for outcome in outcomes:
            whole.note(outcome.points, outcome.status, reason(outcome.first_fault))
        found.append(whole)
        for title, possible in parts_of(outcomes).items():
            tally = Tally(assignment, exercise, title, possible)
            for outcome in outcomes:
                part = next((one for one in outcome.parts if one.title == title), None) or outcome.parts[-1]
                tally.note(part.earned if part.title == title else 0.0, part.status, reason(part))
            found.append(tally)
    return found


def parts_of(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """The parts of an exercise and their points, in the order of the outcome with the most parts."""
    known: dict[str, float] = {}
    for outcome in sorted(outcomes, key=lambda one: -len(one.parts)):
        known |= {part.title: part.points for part in outcome.parts
                  if part.title not in LEFT_OVER and part.title not in known}  # fmt: skip
    return known


def reason(part: PartResult | None) -> str:
    """Why a part was lost, in the same words for the same mistake: the cause, else the message without numbers."""
    if part is None:
        return ""
    if part.status in (Status.NOT_ATTEMPTED, Status.STUCK):
        return part.status.value
    text = part.cause or NUMBER.sub("…", part.message.partition(RAISED_IN)[0])
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_REASON else f"{text[:LONGEST_REASON]} …"
