"""The grades so far, in one SQLite file, so that a run continues where another was killed.

SQLite writes a grade whole or not at all, even if the process is killed or the disk is full, and is in the standard
library. The CSV tables are made from this file. Only the teacher's points are read back from them.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from course.grading.grade import Grade
from course.judging import Outcome, PartResult, Status
from course.judging.judged_notebook import Judgement

LAYOUT = 1
"""The version of the tables below; a file with another version is not read."""

COMMENTS = """
    CREATE TABLE IF NOT EXISTS comments
        (student, assignment, exercise, text, PRIMARY KEY (student, assignment, exercise))
"""
"""A table that older files do not have."""

TABLES = """
    CREATE TABLE graded (student, assignment, fingerprint, page, grade, PRIMARY KEY (student, assignment));
    CREATE TABLE given (student, assignment, exercise, points, basis, PRIMARY KEY (student, assignment, exercise));
    CREATE TABLE written (row PRIMARY KEY);
"""

Key = tuple[str, str]
"""Student and assignment."""


@dataclass(frozen=True)
class Graded:
    """A stored grade, its fingerprint (see `fingerprint.py`), and the path of its page; "" if it has none."""

    grade: Grade
    fingerprint: str
    page: str


class State:
    """The file.

    Tables: `graded`, the grades; `given`, points by hand; `comments`, the teacher's comments; `written`, hashes of rows
    of the CSV tables.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = opened(path)
        with self._connection:
            self._connection.execute(COMMENTS)

    def close(self) -> None:
        self._connection.close()

    def graded(self) -> dict[Key, Graded]:
        """All grades, without points by hand; skips those that another version of the course stored differently."""
        found = {}
        rows = self._connection.execute("SELECT student, assignment, fingerprint, page, grade FROM graded")
        for student, assignment, fingerprint, page, text in rows:
            with contextlib.suppress(TypeError, KeyError, ValueError, AttributeError):
                found[student, assignment] = Graded(grade_in(student, assignment, text), fingerprint, page)
        return found

    def keep(self, graded: Graded) -> None:
        """Store a grade; it replaces an earlier one of the same student and assignment."""
        grade = graded.grade
        row = (grade.student, grade.assignment, graded.fingerprint, graded.page, text_of(grade))
        with self._connection:
            self._connection.execute("INSERT OR REPLACE INTO graded VALUES (?, ?, ?, ?, ?)", row)

    def given(self, key: Key | None = None) -> dict[Key, dict[str, tuple[float, str]]]:
        """Points by hand of one submission, or of all: by key and exercise, each with its basis."""
        found: dict[Key, dict[str, tuple[float, str]]] = {}
        for student, assignment, exercise, points, basis in self._rows_of("given", key):
            found.setdefault((student, assignment), {})[exercise] = points, basis
        return found

    def give(self, changes: Iterable[tuple[Key, str, float | None, str]]) -> None:
        """Store changes of points by hand: key, exercise, points (None takes them back), basis."""
        with self._connection:
            for key, exercise, points, basis in changes:
                self._connection.execute(
                    "DELETE FROM given WHERE student = ? AND assignment = ? AND exercise = ?", (*key, exercise)
                )
                if points is not None:
                    row = (*key, exercise, points, basis)
                    self._connection.execute("INSERT INTO given VALUES (?, ?, ?, ?, ?)", row)

    def comments(self, key: Key | None = None) -> dict[Key, dict[str, str]]:
        """The teacher's comments on one submission, or on all: by key and exercise."""
        found: dict[Key, dict[str, str]] = {}
        for student, assignment, exercise, text in self._rows_of("comments", key):
            found.setdefault((student, assignment), {})[exercise] = text
        return found

    def comment(self, changes: Iterable[tuple[Key, str, str]]) -> None:
        """Store changed comments: key, exercise, text ("" takes it back)."""
        with self._connection:
            rows = [(*key, exercise, text) for key, exercise, text in changes]
            self._connection.executemany("INSERT OR REPLACE INTO comments VALUES (?, ?, ?, ?)", rows)
            self._connection.execute("DELETE FROM comments WHERE text = ''")

    def _rows_of(self, table: str, key: Key | None) -> Iterable[tuple[Any, ...]]:
        where = "" if key is None else " WHERE student = ? AND assignment = ?"  # found by the primary key
        return self._connection.execute(f"SELECT * FROM {table}{where}", key or ())

    def written(self) -> set[str]:
        """The hashes of all rows that the grader ever wrote into a table."""
        return {row for (row,) in self._connection.execute("SELECT row FROM written")}

    def will_write(self, rows: Iterable[str]) -> None:
        """Store the hashes of rows before the rows are written into a table."""
        with self._connection:
            self._connection.executemany("INSERT OR IGNORE INTO written VALUES (?)", [(row,) for row in rows])


def opened(path: Path) -> sqlite3.Connection:
    """The data base at a path; a new one if there is none. A file that is no data base is renamed."""
    for _ in range(2):
        connection = sqlite3.connect(path, check_same_thread=False)
        try:
            (layout,) = connection.execute("PRAGMA user_version").fetchone()
            if layout == LAYOUT:
                return connection
            if layout == 0 and not connection.execute("SELECT name FROM sqlite_master").fetchone():
                connection.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {LAYOUT}; COMMIT;")
                return connection
        except sqlite3.DatabaseError as error:
            connection.close()
            if isinstance(error, sqlite3.OperationalError):  # such as a full disk
                raise
        connection.close()
        path.replace(path.with_name(f"{path.name}.damaged"))
    raise sqlite3.OperationalError(f"{path} cannot be made")


def text_of(grade: Grade) -> str:
    """A grade as JSON, without points by hand."""
    outcomes = {name: [asdict(outcome) for outcome in each] for name, each in grade.judgement.outcomes.items()}
    kept = {"outcomes": outcomes, "remarks": grade.judgement.remarks, "by_hand": list(grade.by_hand)}
    return json.dumps(kept, default=lambda status: status.value)


def grade_in(student: str, assignment: str, text: str) -> Grade:
    """The stored grade."""
    kept = json.loads(text)
    outcomes = {name: [outcome_in(outcome) for outcome in each] for name, each in kept["outcomes"].items()}
    by_hand = [(name, points, answer) for name, points, answer in kept["by_hand"]]
    return Grade(student, assignment, Judgement(outcomes, kept["remarks"]), by_hand)


def outcome_in(kept: dict[str, Any]) -> Outcome:
    """A stored outcome."""
    parts = tuple(PartResult(**{**part, "status": Status(part["status"])}) for part in kept["parts"])
    return Outcome(**{**kept, "parts": parts})
