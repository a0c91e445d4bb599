"""class.csv: for every student of the roster, what was handed in, when, and the points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from course.grading.roster.headers import Kind
from course.grading.roster.lateness import UNITS, HandedIn, Policy, as_handed_in, handed_in
from course.grading.roster.matching import Match, match
from course.grading.roster.roster import Roster, Student
from course.grading.submissions.platforms import are_from_canvas
from course.plural import counted, listed

HANDED_IN, MISSING, STRANGER, UNCERTAIN, TWICE, UNGRADABLE = (
    "handed in", "not handed in", "not on the roster", "several fit", "handed in more than once", "not gradable",
)  # fmt: skip
"""The status of a student's assignment. Only the first has points that go into a gradebook."""

COLUMNS = (
    "student", *(kind.replace(" ", "_").lower() for kind in Kind),
    "assignment", "status", "matched_by", "submission", "points", "of",
    "waiting_by_hand", "handed_in", "handed_in_by", "deadline", "late_hours", "penalty", "points_after_penalty",
    "remark",
)  # fmt: skip
"""The columns of class.csv."""


MOST_TOLD = 20
"""The most students that a notice names; class.csv names all."""


@dataclass(frozen=True)
class Result:
    """The points of a submission.

    student: its name in grades.csv.
    path: the file.
    points, possible: points reached and possible, those by hand included.
    waiting: possible points that are still to be given by hand.
    problem: why it could not be graded.
    comments: the teacher's comments.
    """

    student: str
    assignment: str
    path: Path
    points: float
    possible: float
    waiting: float = 0.0
    problem: str = ""
    comments: str = ""


@dataclass(frozen=True)
class ClassTableRow:
    """A row of class.csv; `student` is None if no student of the roster matches, or there is no roster."""

    assignment: str
    status: str
    student: Student | None = None
    matched_by: str = ""
    result: Result | None = None
    possible: float = 0.0
    arrival: HandedIn | None = None
    policy: Policy | None = None
    remark: str = ""

    @property
    def late_by(self) -> timedelta | None:
        """The time after the deadline; None without a deadline or a submission."""
        deadline = self.policy.deadline(self.assignment) if self.policy else None
        if self.policy is None or deadline is None or self.arrival is None:
            return None
        return self.arrival.late_by(deadline, UNITS[self.policy.unit])

    @property
    def is_uncertain(self) -> bool:
        """Whether it is not known whose submission it is, or which of several counts."""
        return self.status in (STRANGER, UNCERTAIN, TWICE)

    @property
    def lateness(self) -> str:
        """How late it is, in words; "" if it is in time."""
        return self.policy.in_words(self.assignment, self.late_by) if self.policy and self.late_by else ""

    @property
    def penalty(self) -> float | None:
        """The points that lateness costs; None without a deadline or a submission."""
        if self.policy is None or self.late_by is None or self.result is None:
            return None
        return self.policy.penalty(self.result.points, self.assignment, self.late_by)

    @property
    def final(self) -> float | None:
        """The points for a gradebook, after the penalty; None while they are incomplete or uncertain."""
        if self.result is None or self.status != HANDED_IN or self.result.waiting:
            return None
        return self.result.points - (self.penalty or 0.0)

    @property
    def row(self) -> dict[str, Any]:
        """The row of the file; uncertain points are left out."""
        known, result = self.student or Student(self.result.student if self.result else ""), self.result
        deadline = self.policy.deadline(self.assignment) if self.policy else None
        at = self.arrival.at if self.arrival else None
        at = at and at.astimezone(deadline.tzinfo if deadline else None)
        return {
            "student": known.called,
            **dict(zip(COLUMNS[1:], (known.identifiers.get(kind, "") for kind in Kind), strict=False)),
            "assignment": self.assignment, "status": self.status, "matched_by": self.matched_by,
            "submission": result.student if result else "",
            "points": rounded(result.points) if result else "", "of": rounded(self.possible),
            "waiting_by_hand": rounded(result.waiting) if result else "",
            "handed_in": f"{at:%Y-%m-%d %H:%M:%S%z}" if at else "",
            "handed_in_by": self.arrival.source if self.arrival else "",
            "deadline": f"{deadline:%Y-%m-%d %H:%M:%S%z}" if deadline else "",
            "late_hours": "" if self.late_by is None else rounded(self.late_by / timedelta(hours=1)),
            "penalty": "" if self.penalty is None else rounded(self.penalty),
            "points_after_penalty": "" if self.policy is None or self.final is None else rounded(self.final),
            "remark": "; ".join(filter(None, (self.remark, self.lateness))),
        }  # fmt: skip


def rounded(number: float) -> str:
    """A number as gradebooks read it: a decimal point, at most two decimals.

    >>> rounded(12.0), rounded(7.125), rounded(0.5)
    ('12', '7.12', '0.5')
    """
    return f"{number:.2f}".rstrip("0").rstrip(".")


def class_lines(
    results: Sequence[Result],
    folder: Path,
    roster: Roster | None = None,
    policy: Policy | None = None,
    possible: Mapping[str, float] | None = None,
) -> list[ClassTableRow]:
    """A line for every student and assignment, in the roster's order; then the submissions that match no student.

    folder: the folder of submissions; paths below it are compared with the roster.
    possible: the points of the assignments that are due; those that somebody handed in are added.
    """
    by_possible = sorted(results, key=lambda one: one.possible)  # what cannot be graded has 0
    possible = {**{one.assignment: one.possible for one in by_possible if one.assignment}, **(possible or {})}
    matches = {one.path: match(as_handed_in(one.path).relative_to(folder), one.assignment, roster) if roster
               else Match(None) for one in results}  # fmt: skip
    is_from_canvas = are_from_canvas(as_handed_in(one.path).name for one in results if not one.problem)
    places: dict[tuple[int, str], list[Result]] = {}
    lines, strangers = [], []
    for one in results:
        found = matches[one.path]
        if found.student is None or roster is None:
            strangers.append(line_of(one, found, policy, is_from_canvas, has_roster=roster is not None))
        else:
            places.setdefault((id(found.student), one.assignment), []).append(one)
    for student in roster.students if roster else ():
        unknown = places.get((id(student), ""), [])
        for assignment in sorted(possible):
            theirs = places.get((id(student), assignment), [])
            count = sum(not one.problem for one in theirs)
            if not theirs:
                remark = (
                    f"look at {listed([one.path.name for one in unknown])}, for no known assignment" if unknown else ""
                )
                lines.append(ClassTableRow(assignment, MISSING, student, possible=possible[assignment], policy=policy,
                                           remark=remark))  # fmt: skip
            lines += [
                line_of(one, matches[one.path], policy, is_from_canvas, count=count, possible=possible[assignment])
                for one in theirs
            ]
        lines += [line_of(one, matches[one.path], policy, is_from_canvas) for one in unknown]
    return lines + sorted(strangers, key=lambda line: (line.assignment, line.result.student if line.result else ""))


def line_of(
    result: Result,
    found: Match,
    policy: Policy | None,
    is_from_canvas: bool,
    has_roster: bool = True,
    count: int = 1,
    possible: float | None = None,
) -> ClassTableRow:
    """The line of a submission; `count`: the student's number of submissions for this assignment."""
    status, remark = HANDED_IN, ""
    if has_roster and found.student is None:
        status, remark = (UNCERTAIN if found.candidates else STRANGER), found.problem
    elif count > 1:
        status, remark = TWICE, f"{counted(count, 'submission')}: take all but one away, and grade again"
    if result.problem:
        status, remark = UNGRADABLE, "; ".join(filter(None, (result.problem, remark)))
    in_roster = found.student.handed_in if found.student else ""
    deadline = policy.deadline(result.assignment) if policy else None
    zone = deadline.tzinfo if deadline else None
    arrival = handed_in(result.path, result.assignment, in_roster, is_from_canvas, zone)
    if policy and arrival.remark:
        remark = "; ".join(filter(None, (remark, arrival.remark)))
    of = result.possible if possible is None else possible
    return ClassTableRow(result.assignment, status, found.student, found.by, result, of, arrival, policy, remark)


def shortened(name: str) -> str:
    """A name, shortened to fit on a line."""
    return name if len(name) <= 80 else f"{name[:50]} … {name[-27:]}"


def summary(lines: Sequence[ClassTableRow]) -> list[str]:
    """Sentences for the teacher: who is missing, uncertain, late, or waits for points."""
    sentences = []
    namesakes = Counter(student.called for student in {line.student for line in lines if line.student})
    for assignment in sorted({line.assignment for line in lines}):
        those = [line for line in lines if line.assignment == assignment]
        count = Counter(line.status for line in those)
        counts = ", ".join(f"{number} {status}" for status, number in count.most_common())
        sentences.append(f"{assignment or 'no assignment'}: {counts}.")
        missing = [
            (line.student.told if namesakes[line.student.called] > 1 else line.student.called)
            + (f" ({line.remark})" if line.remark else "")
            for line in those if line.status == MISSING and line.student
        ]  # fmt: skip
        if missing and len(missing) < len(those):
            sentences.append(f"  {MISSING}: {listed(missing, MOST_TOLD, '; ')}.")
    uncertain = [line for line in lines if line.is_uncertain]
    sentences += [
        f"  {shortened(line.result.student)}: {line.status}{f' ({line.remark})' if line.remark else ''}."
        for line in uncertain[:MOST_TOLD]
        if line.result
    ]
    waiting = sum(bool(line.result and line.result.waiting) for line in lines)
    if waiting:
        sentences.append(
            f"No final points yet for {counted(waiting, 'submission')}: answers wait to be graded by hand."
        )
    late = [line for line in lines if line.late_by]
    if late:
        sources = Counter(line.arrival.source for line in late if line.arrival)
        by = ", ".join(f"{number} by {source}" for source, number in sources.most_common())
        sentences.append(f"Late: {len(late)} ({by}).")
    unread = sum(bool(line.policy and line.arrival and line.arrival.remark) for line in lines)
    if unread:
        sentences.append(f"{unread} have a time of submission that cannot be read: see the column remark.")
    return sentences
