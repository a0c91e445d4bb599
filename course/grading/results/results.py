"""The folder of results: each submission has its rows and its page as soon as it is graded, and keeps them.

`state/` holds the grades (`state.py`). grades.csv and exercises.csv are made from it. Points that a teacher wrote into
exercises.csv are read back into it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from course import whole_file
from course.grading.feedback.page import with_points
from course.grading.grade import COLUMNS, EXERCISE_COLUMNS, Grade
from course.grading.results.leftovers import remove_leftovers
from course.grading.results.points_by_hand import basis_of, beyond, changes_in, comments_in, not_taken
from course.grading.results.state import Graded, Key, State
from course.grading.tables import grade_tables

COLUMNS_OF = {"grades.csv": COLUMNS, "exercises.csv": EXERCISE_COLUMNS}


class CannotWriteError(Exception):
    """The results cannot be written; the text is a sentence that says why.

    is_before: whether it happened before anything was graded.
    """

    is_before = False


class Results:
    """The results in one folder; one grader at a time may open them.

    grades: the grades of this run, by student and assignment.
    kept_files: earlier tables that were renamed, because they hold more than the grader wrote.
    not_taken: points by hand that could not be read, one sentence each.
    absent: what was graded in an earlier run and is not among the submissions of this one.

    Every method that writes raises CannotWriteError.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.grades: dict[Key, Grade] = {}
        self.kept_files: list[Path] = []
        self.not_taken: list[str] = []
        self.absent: list[Key] = []
        self._lock = FileLock(folder / "state" / "lock", timeout=0)

    def __enter__(self) -> Results:
        with writing(self.folder, is_before=True):
            (self.folder / "state").mkdir(parents=True, exist_ok=True)
            try:
                self._lock.acquire()
            except Timeout:
                raise BlockingIOError(None, "another grader is at work there; wait for it, or stop it") from None
            try:
                remove_leftovers(self.folder / "state" / "run")
                self._state = State(self.folder / "state" / "graded.sqlite")
            except BaseException:
                self._lock.release()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self._state.close()
        self._lock.release()

    def begin(self, wanted: Mapping[Key, str], again: Collection[Key] = ()) -> set[Key]:
        """The submissions that are graded already, with the same fingerprint, and have a page; writes their rows.

        Submissions in `again`, and those with a check that itself failed, count as not graded.
        """
        with writing(self.folder):
            self._take_points_by_hand()
            self.absent = sorted(self._state.graded().keys() - wanted.keys())
            for key, kept in self._state.graded().items():
                grade = self._with_points_by_hand(kept.grade)
                if (
                    key not in again and wanted.get(key) == kept.fingerprint
                    and self._has_page(kept) and not grade.unfinished
                ):  # fmt: skip
                    self.grades[key] = grade
            self._write()
        return set(self.grades)

    def add(self, grade: Grade, fingerprint: str, page: str) -> Grade:
        """Store a grade and add its rows to the tables; returns it with the points that the teacher gave earlier."""
        with writing(self.folder):
            self._state.keep(Graded(grade, fingerprint, page))
            self.grades[grade.student, grade.assignment] = grade = self._with_points_by_hand(grade)
            for name in reversed(COLUMNS_OF):
                rows = list(rows_of([grade], name))
                self._state.will_write(row_hash(row, name) for row in rows)
                grade_tables.append(rows, self.folder / name, COLUMNS_OF[name])
        return grade

    def write_page(self, page: Path, text: str) -> str:
        """Why the page could not be written; "" if it is."""
        try:
            whole_file.replace(self.folder / page, text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            return f"its feedback page could not be written: {error.strerror}"
        return ""

    def finish(self) -> list[Grade]:
        """Write the tables in order, with points that the teacher has entered since; returns all grades."""
        with writing(self.folder):
            self._take_points_by_hand()
            self.grades = {key: self._with_points_by_hand(grade) for key, grade in self.grades.items()}
            self._write()
        return self._in_order()

    def show_points(self, section: Callable[[Grade], str]) -> None:
        """Write the teacher's points and comments on the pages: `section` makes the part of a page that shows them."""
        with writing(self.folder):
            for key, kept in self._state.graded().items():
                page = self.folder / kept.page
                if key in self.grades and kept.page and page.is_file():
                    before = page.read_text(encoding="utf-8")
                    after = with_points(before, section(self.grades[key]))
                    if after != before:
                        whole_file.replace(page, after.encode("utf-8", "backslashreplace"))

    def _in_order(self) -> list[Grade]:
        return sorted(self.grades.values(), key=lambda one: (one.assignment, one.student))

    def _has_page(self, kept: Graded) -> bool:
        return bool(kept.page) and (self.folder / kept.page).is_file()

    def _write(self) -> None:
        """Write both tables; an earlier one that holds more than the grader wrote is renamed, not overwritten."""
        for name, columns in COLUMNS_OF.items():
            path, rows = self.folder / name, list(rows_of(self._in_order(), name))
            if self._is_anothers(grade_tables.read(path), name):
                written = datetime.fromtimestamp(path.stat().st_mtime)
                self.kept_files.append(
                    path.rename(path.with_name(f"{path.stem}.{written:%Y-%m-%d.%H%M%S}{path.suffix}"))
                )
            self._state.will_write(row_hash(row, name) for row in rows)
            grade_tables.write(rows, path, columns)

    def _is_anothers(self, table: grade_tables.GradeTable, name: str) -> bool:
        """Whether a table holds more than a grader wrote and the points by hand that were read from it."""
        written, students = self._state.written(), {student for student, _ in self._state.graded()}
        if table.cut and not any(grade_tables.harmless(one).startswith(table.cut["student"]) for one in students):
            return True
        unread = name == "exercises.csv" and any(not is_number(row.get("points", "")) for row in table.rows)
        return not table.is_one or unread or any(row_hash(row, name) not in written for row in table.rows)

    def _take_points_by_hand(self) -> None:
        rows = grade_tables.read(self.folder / "exercises.csv").with_points
        graded = {key: kept.grade for key, kept in self._state.graded().items()}
        self.not_taken += not_taken(rows, graded)
        self._state.give(changes_in(rows, graded, self._state.given()))
        self._state.comment(list(comments_in(rows, graded, self._state.comments())))

    def _with_points_by_hand(self, grade: Grade) -> Grade:
        key = grade.student, grade.assignment
        given = self._state.given(key).get(key, {})
        known = {*grade.checked, *(name for name, _, _ in grade.by_hand)}
        old = [name for name, (_, basis) in given.items() if name in known and basis not in ("", basis_of(grade, name))]
        remarks = [f"points by hand were given before it changed, look again: {', '.join(old)}"] if old else []
        grade = replace(grade, given={name: given[name][0] for name in given if name in known})
        if odd := beyond(grade):
            remarks.append(f"points by hand are less than 0, or more than there are: {', '.join(odd)}")
        comments = self._state.comments(key).get(key, {})
        return replace(grade, remarks=remarks, comments={name: comments[name] for name in comments if name in known})


@contextmanager
def writing(folder: Path, is_before: bool = False) -> Iterator[None]:
    """Turn an error of the system while writing into a CannotWriteError with one sentence."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        problem = CannotWriteError(f"The results cannot be written to {folder}: {why}.")
        problem.is_before = is_before
        raise problem from error


def rows_of(grades: Iterable[Grade], name: str) -> Iterator[Mapping[str, Any]]:
    """The rows of a table."""
    for grade in grades:
        yield from [grade.row] if name == "grades.csv" else grade.exercise_rows


def row_hash(row: Mapping[str, Any], name: str) -> str:
    """A hash of a row that a spreadsheet does not change; what a teacher may enter does not count."""
    cells = {column: grade_tables.same_cell(grade_tables.harmless(value)) for column, value in row.items()}
    if name == "exercises.csv":
        cells = {name: cell for name, cell in cells.items() if name not in ("points", "comment")}
    return sha256(json.dumps([name, sorted(cell for cell in cells.items() if cell[1])]).encode()).hexdigest()


def is_number(cell: str) -> bool:
    """Whether points can be read from a cell, which may be empty."""
    try:
        grade_tables.number(cell)
    except ValueError:
        return False
    return True
