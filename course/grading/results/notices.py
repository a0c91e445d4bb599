"""Notices for the teacher after a run of `course grade`, in sentences."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from course.grading.grade import Grade
from course.grading.results.results import Results
from course.plural import counted, listed
from course.setup.bootstrap import ROOT


def in_the_way(*folders: Path) -> str:
    """Why a folder cannot hold submissions or results: answers may not read there, but must read the course."""
    needed = (ROOT / "course", ROOT / "minidl", Path(sys.prefix), Path(sys.base_prefix))
    for folder in folders:
        if any(one.resolve().is_relative_to(folder.resolve()) for one in needed):
            return (
                f"{folder} holds the course itself, or Python, which every answer has to read, and an answer may read "
                "neither the folder of the submissions nor that of the results: name one for these alone."
            )
    return ""


def of_tables(results: Results, folder: Path) -> Iterator[str]:
    """Grades that are not in the tables, points that could not be read, and tables that were renamed."""
    if results.absent:
        names = listed([f"{student} ({assignment})" for student, assignment in results.absent], between="; ")
        yield (
            f"{len(results.absent)} that were graded before are not in {folder} now, and not in the tables: {names}. "
            "What is known of them is kept. For another folder of submissions, name other results with --to."
        )
    if results.not_taken:
        yield f"Points by hand that were not taken: {listed(results.not_taken, between='; ')}."
    if results.kept_files:
        names = ", ".join(path.name for path in results.kept_files)
        yield f"A table held more than is read from it (points and comments of known rows), and was renamed: {names}."


def of_not_gradable(graded: Sequence[Grade]) -> Iterator[str]:
    """Who handed in what cannot be graded."""
    if those := [one.student for one in graded if not one.judgement.outcomes]:
        yield f"Not gradable: {listed(those, most=20, between='; ')}. The column remarks of grades.csv says why."


def of_points_by_hand(graded: Sequence[Grade]) -> Iterator[str]:
    """Remarks on points by hand. The points count as they are, in the gradebook's files too."""
    if remarked := [f"{one.student}: {'; '.join(one.remarks)}" for one in graded if one.remarks]:
        yield f"These points count as they are. {listed(remarked, between='; ')}."


def of_failed_checks(graded: Sequence[Grade]) -> str:
    """The students whose points are missing because a check itself failed; "" if there are none."""
    unfinished = [one for one in graded if one.unfinished]
    if not unfinished:
        return ""
    names = listed([f"{one.student} ({', '.join(one.unfinished)})" for one in unfinished], between="; ")
    return (
        f"Checks of {counted(len(unfinished), 'submission')} failed through no fault of the answer, so that points are "
        f"missing: {names}. The remarks say why; the same command makes these checks again, or give points by hand."
    )
