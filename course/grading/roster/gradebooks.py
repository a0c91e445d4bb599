"""Points as files that Canvas and Moodle import without edits, one file per assignment.

A file holds only students whose points are complete, so that an import never empties a cell.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

from course.chapters import CHAPTERS
from course.grading.roster.class_table import ClassTableRow, rounded
from course.grading.roster.roster import HEADERS, Roster
from course.grading.tables.grade_tables import harmless
from course.plural import counted
from course.whole_file import replace

CANVAS_STUDENT = (
    "Student", "LastName", "FirstName", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Root Account",
    "Section",
)  # fmt: skip
"""The columns with which Canvas identifies a student; all others are assignments, or calculated."""

SIGNS = ("-", "+")
"""Cells that hold a sign only: Moodle's mark for an empty cell, not a formula."""

ITS_NUMBER = re.compile(r"\s\(\d+\)$")
"""The number that Canvas appends to an assignment's title."""

CHAPTERS_NUMBER = re.compile(
    r"\s*(?:(?:chapter|assignment|exercises?|homework|hw|notebook)\b\W*)?0*(\d+)(?![\w.]*\d)\b", re.IGNORECASE
)
"""The beginning of a title with a chapter's number: "04 Messages", "Chapter 4", but not "Quiz 4"."""


def write_gradebooks(lines: Sequence[ClassTableRow], roster: Roster, folder: Path) -> tuple[list[Path], list[str]]:
    """Write what the roster's system imports; both systems for a plain roster. Returns the files, and notices."""
    written, sentences = [], []
    for path in [*folder.glob("canvas_*.csv"), *folder.glob("moodle_*.csv")]:  # points may have become incomplete
        path.unlink()
    for assignment in sorted({line.assignment for line in lines if line.assignment}):
        those = [line for line in lines if line.assignment == assignment and line.student is not None]
        done = [line for line in those if line.final is not None]
        handed_in = sum(line.result is not None for line in those)
        if handed_in > len(done):
            those_left = f"{handed_in - len(done)} of {counted(handed_in, 'submission')}"
            sentences.append(f"{assignment}: the points of {those_left} are not complete or certain yet, and not in "
                             "the gradebook's files.")  # fmt: skip
        if not done:
            continue
        tables = {}
        if roster.kind in ("canvas", "plain"):
            tables["canvas"] = canvas(assignment, done, roster)
            sentences += canvas_column(assignment, done, roster)
        if roster.kind in ("moodle", "plain"):
            tables["moodle"] = moodle(assignment, done, roster)
        if roster.kind == "moodle worksheet":
            tables["moodle"] = worksheet(done, roster)
            sentences += other_scale(done)
        for system, table in tables.items():
            path = folder / f"{system}_{assignment}.csv"
            write_table(table, path)
            written.append(path)
    return written, sentences


def canvas(assignment: str, lines: Sequence[ClassTableRow], roster: Roster) -> list[list[str]]:
    """What Canvas' gradebook imports: the students' columns, one assignment, and its row of possible points.

    A title of the roster, such as "04 Messages (991)", is kept, so that the points go to that assignment. Without one
    Canvas offers to make a new assignment.
    """
    columns = [column for column in roster.columns if column in CANVAS_STUDENT]
    if roster.kind != "canvas":
        columns = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    title = title_among(roster.columns, assignment)
    of = rounded(lines[0].possible)
    for row in roster.dropped if title else ():
        if "points possible" in row[roster.columns[0]].lower():
            of = row[title] or of
    table = [[*columns, title or assignment], ["    Points Possible", *[""] * (len(columns) - 1), of]]
    for line in lines:
        student = line.student
        assert student is not None
        own = {"Student": student.called, "SIS User ID": next(iter(student.ids), ""),
               "SIS Login ID": next(iter(student.logins), student.email)}  # fmt: skip
        row = student.row if roster.kind == "canvas" else own
        table.append([*(row.get(column, "") for column in columns), points(line)])
    return table


def title_among(columns: Sequence[str], assignment: str) -> str:
    """The column of an assignment, by its name, title or number; "" if none or several fit."""
    number = assignment.split("_")[0]
    title = next((chapter.title for chapter in CHAPTERS if chapter.name == assignment), assignment)
    of_assignments = [column for column in columns if ITS_NUMBER.search(column)]
    for known in (assignment, title):
        fitting = [column for column in of_assignments if ITS_NUMBER.sub("", column).lower() == known.lower()]
        if len(fitting) == 1:
            return fitting[0]
    fitting = [
        column
        for column in of_assignments
        if (found := CHAPTERS_NUMBER.match(ITS_NUMBER.sub("", column))) and found[1] == number.lstrip("0")
    ]
    return fitting[0] if len(fitting) == 1 else ""


def canvas_column(assignment: str, lines: Sequence[ClassTableRow], roster: Roster) -> list[str]:
    """Notices on the Canvas column that gets the points: if it has another name, or another scale."""
    title = title_among(roster.columns, assignment)
    if not title:
        return []
    sentences = []
    if ITS_NUMBER.sub("", title) != assignment:
        sentences.append(f"Points for {assignment} go to Canvas' column {title!r}.")
    of = next((row[title] for row in roster.dropped if "points possible" in row[roster.columns[0]].lower()), "")
    if re.fullmatch(r"\d+(\.\d+)?", of) and float(of) != lines[0].possible:
        sentences.append(f"Canvas' points possible are {of} there, and {assignment} has {rounded(lines[0].possible)} "
                         "points: change them in Canvas; the points are not scaled.")  # fmt: skip
    return sentences


def moodle(assignment: str, lines: Sequence[ClassTableRow], roster: Roster) -> list[list[str]]:
    """What Moodle's grade import reads: the roster's identifying columns, and one of points."""
    known = {header for kind, headers in HEADERS.items() if kind != "handed_in" for header in headers}
    columns = [column for column in roster.columns if column.lower() in known]
    rows = [[*(line.student.row[column] for column in columns), points(line)] for line in lines if line.student]
    return [[*columns, assignment], *rows]


def worksheet(lines: Sequence[ClassTableRow], roster: Roster) -> list[list[str]]:
    """Moodle's grading worksheet with the grades and the teacher's comments, all other cells unchanged."""
    rows = []
    for line in lines:
        assert line.student is not None
        assert line.result is not None
        row = dict(line.student.row)
        for column in roster.columns:
            if column.lower() == "grade":
                row[column] = points(line)
            elif column.lower() == "feedback comments" and line.result.comments:
                row[column] = line.result.comments
        rows.append([row[column] for column in roster.columns])
    return [list(roster.columns), *rows]


def other_scale(lines: Sequence[ClassTableRow]) -> list[str]:
    """A notice if Moodle's highest grade is not the assignment's."""
    highest = {value for line in lines if line.student for column, value in line.student.row.items()
               if column.lower() == "maximum grade" and value}  # fmt: skip
    wrong = [value for value in highest if re.fullmatch(r"[\d.]+", value) and float(value) != lines[0].possible]
    if not wrong:
        return []
    return [f"Moodle's maximum grade is {wrong[0]}, and {lines[0].assignment} has {rounded(lines[0].possible)} points: "
            "change the maximum in Moodle; the points are not scaled."]  # fmt: skip


def points(line: ClassTableRow) -> str:
    """The final points with two decimals at most."""
    assert line.final is not None
    return rounded(line.final)


def write_table(table: Sequence[Sequence[str]], path: Path) -> None:
    """Write a CSV file, whole or not at all, without a byte order mark: Canvas does not expect one."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([cell if cell in SIGNS else harmless(cell) for cell in row] for row in table)
    replace(path, text.getvalue().encode("utf-8", "backslashreplace"))
