"""Points as files that Canvas and Moodle import without edits, one file per assignment.

A file holds only students whose points are complete, so that an import never empties a cell.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from course.chapters import CHAPTERS
from course.grading.roster.class_table import ClassTableRow, rounded
from course.grading.roster.headers import Kind, folded
from course.grading.roster.roster import Roster
from course.grading.tables.grade_tables import number
from course.plural import listed
from course.whole_file import replace

CANVAS_STUDENT = (
    "Student", "LastName", "FirstName", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Root Account",
    "Section",
)  # fmt: skip
"""The columns with which Canvas identifies a student; all others are assignments, or calculated."""

ITS_NUMBER = re.compile(r"\s\(\d+\)$")
"""The number that Canvas appends to an assignment's title."""

CHAPTERS_NUMBER = re.compile(
    r"\s*(?:(?:chapter|assignment|exercises?|homework|hw|notebook)\b\W*)?0*(\d+)(?![\w.]*\d)\b", re.IGNORECASE
)
"""The beginning of a title with a chapter's number: "04 Messages", "Chapter 4", but not "Quiz 4"."""


def write_gradebooks(lines: Sequence[ClassTableRow], roster: Roster, folder: Path) -> tuple[list[Path], list[str]]:
    """Write what the roster's system imports; both systems for a plain roster. Returns the files, and notices."""
    written, sentences, left = [], [], []
    for path in [*folder.glob("canvas_*.csv"), *folder.glob("moodle_*.csv")]:  # points may have become incomplete
        path.unlink()
    for assignment in sorted({line.assignment for line in lines if line.assignment}):
        those = [line for line in lines if line.assignment == assignment and line.student is not None]
        done = [line for line in those if line.final is not None]
        handed_in = sum(line.result is not None for line in those)
        if handed_in > len(done):
            left.append(f"{assignment} ({handed_in - len(done)} of {handed_in})")
        if not done:
            continue
        tables = {}
        if roster.kind in ("canvas", "plain"):
            known, namesakes = told_apart(done, roster)
            if known:
                tables["canvas"] = canvas(assignment, known, roster)
            sentences += [*namesakes, *canvas_column(assignment, done, roster)]
        if roster.kind in ("moodle", "plain"):
            tables["moodle"] = moodle(assignment, done, roster)
        if roster.kind == "moodle worksheet":
            tables["moodle"] = worksheet(done, roster)
            sentences += [*other_scale(done, roster), *comments_changed(done, roster)]
        for system, table in tables.items():
            path = folder / f"{system}_{assignment}.csv"
            write_table(table, path)
            written.append(path)
    if left:
        sentences.append("Submissions whose points are not complete or certain yet are not in the gradebook's files: "
                         f"{', '.join(left)}.")  # fmt: skip
    return written, sentences


def told_apart(lines: Sequence[ClassTableRow], roster: Roster) -> tuple[list[ClassTableRow], list[str]]:
    """The lines whose students Canvas tells apart, and a notice on the others.

    Canvas looks for a number, a SIS ID and a login, and else takes the first student of the name.
    """
    count = Counter(folded(student.name) for student in roster.students)
    known = [
        line for line in lines
        if (student := line.student)
        and (count[folded(student.name)] == 1 or {Kind.CANVAS, Kind.SIS} & student.identifiers.keys())
    ]  # fmt: skip
    others = [line.student.told for line in lines if line.student and line not in known]
    return known, [
        f"Not in Canvas' file, since others have the same name: {', '.join(others)}. Give them a column 'Canvas ID' or "
        "'SIS user ID' in the roster."
    ] if others else []  # fmt: skip


def canvas(assignment: str, lines: Sequence[ClassTableRow], roster: Roster) -> list[list[str]]:
    """What Canvas' gradebook imports: the students' columns, one assignment, and its row of possible points.

    A title of the roster, such as "04 Messages (991)", is kept, so that the points go to that assignment. Without one
    Canvas offers to make a new assignment.
    """
    columns = [column for column in CANVAS_STUDENT if column in roster.columns]
    if roster.kind != "canvas":
        columns = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    title = title_among(roster.columns, assignment)
    of = points_possible(title, roster) or rounded(lines[0].possible)
    table = [[*columns, title or assignment], ["    Points Possible", *[""] * (len(columns) - 1), of]]
    for line in lines:
        student = line.student
        assert student is not None
        known = student.identifiers
        own = {"Student": student.called, "ID": known.get(Kind.CANVAS, ""), "SIS User ID": known.get(Kind.SIS, ""),
               "SIS Login ID": known.get(Kind.LOGIN) or known.get(Kind.EMAIL, "")}  # fmt: skip
        row = student.row if roster.kind == "canvas" else own
        table.append([*(row.get(column, "") for column in columns), points(line)])
    return table


def points_possible(title: str, roster: Roster) -> str:
    """Canvas' points possible for the column of an assignment; "" if they are unknown."""
    rows = (row for row in roster.dropped if "Points Possible" in row[roster.columns[0]])
    return next((row[title].strip() for row in rows if title), "")


def is_other(written: str, possible: float) -> bool:
    """Whether a number of points, with a decimal point or comma, is another than the assignment's."""
    try:
        return (value := number(written)) is not None and value != possible
    except ValueError:
        return False


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
    excused = [line.student.called for line in lines if line.student and line.student.row[title].strip() == "EX"]
    if excused:
        sentences.append(
            f"Excused in Canvas' column {title!r} until the file is imported: {listed(excused, between='; ')}."
        )
    if ITS_NUMBER.sub("", title) != assignment:
        sentences.append(f"Points for {assignment} go to Canvas' column {title!r}.")
    of = points_possible(title, roster)
    if is_other(of, lines[0].possible):
        sentences.append(f"Canvas' points possible are {of} there, and {assignment} has {rounded(lines[0].possible)} "
                         "points: change them in Canvas; the points are not scaled.")  # fmt: skip
    return sentences


def moodle(assignment: str, lines: Sequence[ClassTableRow], roster: Roster) -> list[list[str]]:
    """What Moodle's grade import reads: the roster's identifying columns, and one of points."""
    identifying = {column for meaning, column in roster.used.items() if meaning != "time of submission"}
    columns = [column for column in roster.columns if column in identifying]
    rows = [[*(line.student.row[column] for column in columns), points(line)] for line in lines if line.student]
    return [[*columns, assignment], *rows]


def worksheet(lines: Sequence[ClassTableRow], roster: Roster) -> list[list[str]]:
    """Moodle's grading worksheet with the grades and the teacher's comments filled in, all other cells as they came."""
    rows = []
    for line in lines:
        assert line.student is not None
        assert line.result is not None
        row = {**line.student.row, roster.used["grade"]: points(line)}
        if "comments" in roster.used and line.result.comments:
            row[roster.used["comments"]] = line.result.comments
        rows.append([row[column] for column in roster.columns])
    return [list(roster.columns), *rows]


def other_scale(lines: Sequence[ClassTableRow], roster: Roster) -> list[str]:
    """A notice if Moodle's highest grade is not the assignment's, or if Moodle grades it in words."""
    if "scale" in roster.used:
        return [f"Moodle grades {lines[0].assignment} by a scale ({roster.used['scale']!r}), and would leave out "
                "points: set the type of the grade to points in Moodle."]  # fmt: skip
    column = roster.used.get("maximum grade", "")
    highest = {line.student.row[column].strip() for line in lines if line.student and column}
    wrong = sorted(value for value in highest if is_other(value, lines[0].possible))
    if not wrong:
        return []
    return [f"Moodle's maximum grade is {wrong[0]}, and {lines[0].assignment} has {rounded(lines[0].possible)} points: "
            "change the maximum in Moodle; the points are not scaled."]  # fmt: skip


def comments_changed(lines: Sequence[ClassTableRow], roster: Roster) -> list[str]:
    """A notice if comments cannot go into Moodle's worksheet, or replace others there."""
    column = roster.used.get("comments", "")
    given = [line for line in lines if line.student and line.result and line.result.comments]
    if given and not column:
        return [f"{roster.path} has no column for comments, so those on {lines[0].assignment} are on the pages alone: "
                "switch on feedback comments in Moodle, and download the worksheet again."]  # fmt: skip
    replaced = [
        line.student.called for line in given
        if line.student and line.result and line.student.row[column].strip() not in ("", line.result.comments)
    ]  # fmt: skip
    return [f"Your comments replace those that Moodle has for {listed(replaced)}."] if replaced else []


def points(line: ClassTableRow) -> str:
    """The final points with two decimals at most."""
    assert line.final is not None
    return rounded(line.final)


def write_table(table: Sequence[Sequence[str]], path: Path) -> None:
    """Write a CSV file for Canvas or Moodle, whole or not at all: in UTF-8 with commas, names and ids as they came.

    It has no byte order mark, and nothing is escaped against formulas: both would not be recognised there.
    """
    text = io.StringIO(newline="")
    csv.writer(text).writerows(table)
    replace(path, text.getvalue().encode())
