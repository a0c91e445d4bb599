"""The students of a class, read from the teacher's table.

The table may be Canvas' exported gradebook, Moodle's list of participants, its grading worksheet, nbgrader's list of
students, or any table. Columns are recognised by their headers.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from course.grading.roster.headers import Kind, columns_of, folded, kind_of
from course.grading.tables.teachers_tables import TableError, TeachersTable, read_table
from course.plural import counted, listed

SYSTEMS = {
    "canvas": "Canvas' gradebook", "moodle worksheet": "Moodle's grading worksheet", "moodle": "a list from Moodle",
    "plain": "a table",
}  # fmt: skip

PARTICIPANT = re.compile(r"\D*?(\d+)")
"""How Moodle's grading worksheet writes the number in the name of a submission's folder: "Participant 1234567",
"Teilnehmer/in1234567"."""

EXCEL_NUMBER = re.compile(r"(\d+)\.0+")
"""A number that a spreadsheet has taken for one with decimals: 4711.0."""

UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"})
"""How German names are written without umlauts."""

NO_ENTRY = ("", "-", "n/a", "none", "null")


@dataclass(frozen=True)
class Student:
    """One student.

    identifiers: by kind, without blanks around them.
    row: the roster's row, by header, as it is in the file.
    line: its line in the file; 0 if the student is not from a file.
    """

    name: str
    identifiers: Mapping[Kind, str] = field(default_factory=dict, hash=False)
    handed_in: str = ""
    row: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    line: int = 0

    @property
    def called(self) -> str:
        """The name, else an identifier."""
        return self.name or next(iter(self.identifiers.values()))

    @property
    def told(self) -> str:
        """The name with an identifier, or with the line in the roster, which tells two students of one name apart."""
        known = next((f"{kind} {value}" for kind, value in self.identifiers.items()), f"line {self.line}")
        return f"{self.called} ({known})"


@dataclass(frozen=True)
class Roster:
    """The students in the order of the file.

    columns: the headers.
    kind: "canvas", "moodle worksheet", "moodle" or "plain".
    used: the column for each meaning: a kind of identifier, "name", "grade", ...
    dropped: rows of the file that are no students, such as Canvas' row of possible points.
    form: the file's encoding and separator.
    """

    students: tuple[Student, ...]
    columns: tuple[str, ...]
    kind: str
    path: Path
    used: Mapping[str, str]
    dropped: tuple[dict[str, str], ...] = ()
    form: str = ""

    @property
    def described(self) -> str:
        """Which file was read, and what each column was taken for, in a paragraph."""
        others = [column for column in self.columns if column not in self.used.values()]
        rows = f" {counted(len(self.dropped), 'row')} without a student." if self.dropped else ""
        return (
            f"{self.path}: {counted(len(self.students), 'student')}; {SYSTEMS[self.kind]}, read as {self.form}. "
            f"{self.looked_for}. Other columns: {listed(others) or 'none'}.{rows}"
        )

    @property
    def looked_for(self) -> str:
        """The columns that were found, with their meanings."""
        return ", ".join(f"{column!r} is the {meaning}" for meaning, column in self.used.items())

    @cached_property
    def by_name(self) -> dict[str, list[Student]]:
        """The students by each of their folded names; without umlauts (Mueller) where nobody is written so."""
        found: dict[str, list[Student]] = {}
        for student in self.students:
            for name in forms_of(student.name):
                found.setdefault(name, []).append(student)
        written = {*found}
        for student in self.students:
            for name in forms_of(unicodedata.normalize("NFC", student.name).translate(UMLAUTS)) - written:
                found.setdefault(name, []).append(student)
        return found

    @cached_property
    def by_identifier(self) -> dict[str, list[tuple[Kind, Student]]]:
        """The kinds and students of each identifier in lower case."""
        found: dict[str, list[tuple[Kind, Student]]] = {}
        for student in self.students:
            for kind, value in student.identifiers.items():
                found.setdefault(value.casefold(), []).append((kind, student))
        return found


def forms_of(name: str) -> set[str]:
    """A name as "First Last" and as "Last, First", folded: any word may be the first of the last name."""
    words = [key for word in name.replace(",", " ").split() if (key := folded(word))]
    return {"".join([*words[cut:], *words[:cut]]) for cut in range(len(words))}


def read_roster(path: Path) -> Roster:
    """The students in a CSV file.

    Raises TableError for a file that is no table, that has no students, or in which two have the same identifier.
    """
    table = read_table(path)
    kind = kind_of(table.columns)
    used = columns_of(table.columns, kind)
    if not {"name", "first name", "last name", *Kind} & used.keys():
        raise TableError(
            f"{path} has no column with names, ids, logins or email addresses: its first line is "
            f"{', '.join(table.columns)!r}; write headers like name, id, login, email there, with nothing above them."
        )
    halves = [half for half in ("first name", "last name") if half in used]
    if "name" not in used and len(halves) == 1:
        raise TableError(
            f"{path} has only half of each name: {used[halves[0]]!r} is the {halves[0]}, and no other column is known "
            f"for the rest; its first line is {', '.join(table.columns)!r}. Write the headers 'first name' and "
            "'last name', or 'name' over whole names."
        )
    students, dropped = [], []
    for line, row in zip(table.lines, table.rows, strict=True):
        student = student_in(row, line, used)
        if (student.name or student.identifiers) and not (kind == "canvas" and is_canvas_own(row, table)):
            students.append(student)
        else:
            dropped.append(row)
    if not students:
        raise TableError(f"{path} has no students: no row under its header names one.")
    roster = Roster(tuple(students), table.columns, kind, path, used, tuple(dropped), table.form)
    for value, owners in roster.by_identifier.items():
        for one, (known, student) in enumerate(owners):
            if other := next((before for before_kind, before in owners[:one] if before_kind == known), None):
                raise TableError(
                    f"{path}, lines {other.line} and {student.line}: {other.called} and {student.called} have the same "
                    f"{known}, {value!r}: correct it, or remove a row that is there twice."
                )
    return roster


def student_in(row: Mapping[str, str], line: int, used: Mapping[str, str]) -> Student:
    """The student of a row."""
    cells = {meaning: " ".join(row[column].split()) for meaning, column in used.items()}
    cells = {meaning: "" if cell.casefold() in NO_ENTRY else cell for meaning, cell in cells.items()}
    identifiers = {kind: bare(cells[kind], kind) for kind in Kind if cells.get(kind)}
    first, last, name = (cells.get(meaning, "") for meaning in ("first name", "last name", "name"))
    if first and not last and folded(first) not in folded(name):  # German lists: Name;Vorname
        last = name
    name = f"{first} {last}" if first and last else name or first or last
    return Student(name, identifiers, cells.get("time of submission", ""), row, line)


def bare(identifier: str, kind: Kind) -> str:
    """An identifier as in file names: "Participant 1234567" is 1234567, and Excel's 4711.0 is 4711."""
    written = {Kind.PARTICIPANT: PARTICIPANT, Kind.LOGIN: None, Kind.EMAIL: None}.get(kind, EXCEL_NUMBER)
    found = written.fullmatch(identifier) if written else None
    return found[1] if found else identifier


def is_canvas_own(row: Mapping[str, str], table: TeachersTable) -> bool:
    """Whether Canvas adds a row of a gradebook: possible points, or the test student."""
    first, second = (row[column].strip() for column in table.columns[:2])
    return "Points Possible" in first or first == "Student, Test" or (first, second) == ("Student", "Test")
