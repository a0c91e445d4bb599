"""What has been graded, kept in one SQLite file, so that a run goes on where another was killed.

SQLite writes a submission's grade whole or not at all, also when the process is killed or the disk is full, and the
standard library has it. The tables for people are made from it: nothing is ever read back from them but what a teacher
has written there.
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
"""Changes when the tables below do; a file of another layout is not read."""

TABLES = """
    CREATE TABLE graded (student, assignment, fingerprint, page, grade, PRIMARY KEY (student, assignment));
    CREATE TABLE given (student, assignment, exercise, points, basis, PRIMARY KEY (student, assignment, exercise));
    CREATE TABLE written (row PRIMARY KEY);
"""

Key = tuple[str, str]
"""Student and assignment."""


@dataclass(frozen=True)
class Graded:
    """A grade that is kept, what it was made of (see `fingerprint.py`), and where its page is; "" if it has none."""

    grade: Grade
    fingerprint: str
    page: str


class State:
    """The file. graded: the submissions; given: points by hand; written: rows of tables that the grader has written."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = opened(path)

    def close(self) -> None:
        self._connection.close()

    def graded(self) -> dict[Key, Graded]:
        """All grades, without points by hand; what another version of the course has kept otherwise is left out."""
        found = {}
        rows = self._connection.execute("SELECT student, assignment, fingerprint, page, grade FROM graded")
        for student, assignment, fingerprint, page, text in rows:
            with contextlib.suppress(TypeError, KeyError, ValueError, AttributeError):
                found[student, assignment] = Graded(grade_in(student, assignment, text), fingerprint, page)
        return found

    def keep(self, graded: Graded) -> None:
        """Keep a grade in place of the one that the student had for this assignment."""
        grade = graded.grade
        row = (grade.student, grade.assignment, graded.fingerprint, graded.page, text_of(grade))
        with self._connection:
            self._connection.execute("INSERT OR REPLACE INTO graded VALUES (?, ?, ?, ?, ?)", row)

    def given(self) -> dict[Key, dict[str, tuple[float, str]]]:
        """Points by hand, by exercise, each with its basis: what they were given to."""
        found: dict[Key, dict[str, tuple[float, str]]] = {}
        for student, assignment, exercise, points, basis in self._connection.execute("SELECT * FROM given"):
            found.setdefault((student, assignment), {})[exercise] = points, basis
        return found

    def give(self, changes: Iterable[tuple[Key, str, float | None, str]]) -> None:
        """Keep points by hand: whose, of which exercise, how many (None takes them back), and the basis."""
        with self._connection:
            for key, exercise, points, basis in changes:
                self._connection.execute(
                    "DELETE FROM given WHERE student = ? AND assignment = ? AND exercise = ?", (*key, exercise)
                )
                if points is not None:
                    row = (*key, exercise, points, basis)
                    self._connection.execute("INSERT INTO given VALUES (?, ?, ?, ?, ?)", row)

    def written(self) -> set[str]:
        """The rows of tables that the grader has ever written, each in one word."""
        return {row for (row,) in self._connection.execute("SELECT row FROM written")}

    def will_write(self, rows: Iterable[str]) -> None:
        """Note rows before they are written into a table."""
        with self._connection:
            self._connection.executemany("INSERT OR IGNORE INTO written VALUES (?)", [(row,) for row in rows])


def opened(path: Path) -> sqlite3.Connection:
    """The data base at a path; a new one if there is none, or if what is there is none; that is kept beside."""
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
    """What is kept of a grade, as JSON."""
    outcomes = {name: [asdict(outcome) for outcome in each] for name, each in grade.judgement.outcomes.items()}
    kept = {"outcomes": outcomes, "remarks": grade.judgement.remarks, "by_hand": list(grade.by_hand)}
    return json.dumps(kept, default=lambda status: status.value)


def grade_in(student: str, assignment: str, text: str) -> Grade:
    """The grade that was kept."""
    kept = json.loads(text)
    outcomes = {name: [outcome_in(outcome) for outcome in each] for name, each in kept["outcomes"].items()}
    by_hand = [(name, points, answer) for name, points, answer in kept["by_hand"]]
    return Grade(student, assignment, Judgement(outcomes, kept["remarks"]), by_hand)


def outcome_in(kept: dict[str, Any]) -> Outcome:
    """An outcome that was kept."""
    parts = tuple(PartResult(**{**part, "status": Status(part["status"])}) for part in kept["parts"])
    return Outcome(**{**kept, "parts": parts})
