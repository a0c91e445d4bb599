"""What the teacher is told about a run of `course grade` on the screen, in sentences."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from course.grading.grade import Grade
from course.grading.results.results import Results
from course.plural import counted
from course.setup.bootstrap import ROOT

MOST_TOLD = 5
"""Of one kind, on the screen."""


def in_the_way(*folders: Path) -> str:
    """Why submissions or results cannot lie in a folder: no answer may read there, and all read the course."""
    needed = (ROOT / "course", ROOT / "minidl", Path(sys.prefix), Path(sys.base_prefix))
    for folder in folders:
        if any(one.resolve().is_relative_to(folder.resolve()) for one in needed):
            return (
                f"{folder} holds the course itself, or Python, which every answer has to read, and an answer may read "
                "neither the folder of the submissions nor that of the results: name one for these alone."
            )
    return ""


def of_tables(results: Results, folder: Path) -> Iterator[str]:
    """What is not in the tables, and what was written into them and was not taken."""
    if results.absent:
        names = told([f"{student} ({assignment})" for student, assignment in results.absent])
        yield (
            f"{len(results.absent)} that were graded before are not in {folder} now, and not in the tables: {names}. "
            "What is known of them is kept. For another folder of submissions, name other results with --to."
        )
    if results.not_taken:
        yield f"Points by hand that were not taken: {told(results.not_taken)}."
    if results.beside:
        yield f"What was there before is kept: {', '.join(path.name for path in results.beside)}"


def of_points_by_hand(graded: Sequence[Grade]) -> Iterator[str]:
    """Whose points by hand have a remark; they count as they are, in the gradebook's files as well."""
    if remarked := [f"{one.student}: {'; '.join(one.remarks)}" for one in graded if one.remarks]:
        yield f"These points count as they are. {told(remarked)}."


def of_failed_checks(graded: Sequence[Grade]) -> str:
    """Who has no points yet because a check failed through no fault of the answer; "" if there is nobody."""
    unfinished = [one for one in graded if one.unfinished]
    if not unfinished:
        return ""
    names = told([f"{one.student} ({', '.join(one.unfinished)})" for one in unfinished])
    return (
        f"Checks of {counted(len(unfinished), 'submission')} failed through no fault of the answer, so that points are "
        f"missing: {names}. The remarks say why; the same command makes these checks again, or give points by hand."
    )


def told(ones: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    return "; ".join(ones[:MOST_TOLD]) + (f"; and {len(ones) - MOST_TOLD} more" if len(ones) > MOST_TOLD else "")
