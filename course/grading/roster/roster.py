"""The students of a class, read from the teacher's table.

The table may be Canvas' exported gradebook, Moodle's list of participants, its grading worksheet, or any table. Columns
are recognised by their headers.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from course.grading.tables.teachers_tables import TableError, TeachersTable, read_table

HEADERS = {
    "name": ("student", "name", "full name", "fullname", "student name", "display name"),
    "first": ("first name", "firstname", "given name", "first name(s)"),
    "last": ("last name", "lastname", "surname", "family name"),
    "id": (
        "id", "id number", "idnumber", "student id", "student number", "sis user id", "matriculation number",
        "identifier",
    ),
    "login": ("login", "username", "user name", "sis login id", "user", "login id", "user id"),
    "email": ("email", "e-mail", "email address", "e-mail address", "mail"),
    "handed_in": ("submitted", "handed in", "last modified (submission)", "submission time", "timestamp"),
}  # fmt: skip
"""For each property of a student: its possible headers, in lower case."""

NOT_A_STUDENT = re.compile(r"points possible|student,\s*test|test student", re.IGNORECASE)
"""The first cell of rows that Canvas adds."""

PARTICIPANT = re.compile(r"participant (\d+)", re.IGNORECASE)
"""How Moodle's grading worksheet writes the number that is in the name of a submission's folder."""


@dataclass(frozen=True)
class Student:
    """One student.

    ids: every number and code of this student.
    row: the roster's row, by header.
    """

    name: str
    ids: tuple[str, ...] = ()
    logins: tuple[str, ...] = ()
    email: str = ""
    handed_in: str = ""
    row: dict[str, str] = field(default_factory=dict, hash=False, compare=False)

    @property
    def called(self) -> str:
        """The name, else the login, the email address or the number."""
        return self.name or next(filter(None, (*self.logins, self.email, *self.ids)))


@dataclass(frozen=True)
class Roster:
    """The students in the order of the file.

    kind: "canvas", "moodle worksheet", "moodle" or "plain".
    dropped: rows of the file that are no students, such as Canvas' row of possible points.
    """

    students: tuple[Student, ...]
    columns: tuple[str, ...]
    kind: str
    path: Path
    dropped: tuple[dict[str, str], ...] = ()


def read_roster(path: Path) -> Roster:
    """The students in a CSV file. Raises TableError for a file that is no table, or that has no students."""
    table = read_table(path)
    columns = {known: columns_for(table, known) for known in HEADERS}
    if not any(columns[known] for known in ("name", "last", "id", "login", "email")):
        raise TableError(
            f"{path} has no column with names, ids, logins or email addresses: its first line is "
            f"{', '.join(table.columns)!r}; write headers such as name, id, login, email there."
        )
    students, dropped = [], []
    for row in table.rows:
        first_cell = row[table.columns[0]]
        if NOT_A_STUDENT.search(first_cell):
            dropped.append(row)
            continue
        student = Student(
            name=name_in(row, columns),
            ids=tuple(number for column in columns["id"] if (number := bare(row[column]))),
            logins=tuple(row[column] for column in columns["login"] if row[column]),
            email=next((row[column] for column in columns["email"] if row[column]), ""),
            handed_in=next((row[column] for column in columns["handed_in"] if row[column]), ""),
            row=row,
        )
        if student.name or student.ids or student.logins or student.email:
            students.append(student)
    if not students:
        raise TableError(f"{path} has no students: no row under its header names one.")
    return Roster(tuple(students), table.columns, kind_of(table), path, tuple(dropped))


def columns_for(table: TeachersTable, known: str) -> list[str]:
    """The columns with one property of a student, the most usual header first."""
    written = {column.strip().lower(): column for column in table.columns}
    return [written[header] for header in HEADERS[known] if header in written]


def name_in(row: dict[str, str], columns: dict[str, list[str]]) -> str:
    """A student's full name, or first and last name joined."""
    if columns["first"] and columns["last"]:
        name = f"{row[columns['first'][0]]} {row[columns['last'][0]]}".strip()
    else:
        name = next((row[column] for column in (*columns["name"], *columns["last"]) if row[column]), "")
    return " ".join(name.split())


def bare(number: str) -> str:
    """A number as in file names: "Participant 1234567" is 1234567, and Excel's 4711.0 is 4711."""
    if named := PARTICIPANT.fullmatch(number):
        return named[1]
    return re.sub(r"^(\d+)\.0+$", r"\1", number)


def kind_of(table: TeachersTable) -> str:
    """Which system wrote the table."""
    headers = [column.lower() for column in table.columns]
    if headers[:1] == ["student"] and "id" in headers and "section" in headers:
        return "canvas"
    if headers[:1] == ["identifier"] and "grade" in headers:
        return "moodle worksheet"
    if {"email address", "id number"} & set(headers):
        return "moodle"
    return "plain"


def sorted_words(name: str) -> tuple[str, ...]:
    """The words of a name in lower case, sorted: "Doe, Jane" and "Jane Doe" are the same."""
    return tuple(sorted(re.findall(r"\w+", same_letters(name).replace("_", " "))))


def one_word(name: str) -> str:
    """A name as Canvas writes it into the names of files: "Doe, Jane" is "doejane"."""
    return re.sub(r"\W", "", same_letters(name).replace("_", ""))


def same_letters(name: str) -> str:
    """A name in lower case and in one Unicode form: macOS decomposes accents in file names."""
    return unicodedata.normalize("NFKC", name).casefold()


def names_of(student: Student) -> Sequence[str]:
    """The ways in which Canvas may write a student's name."""
    words = student.name.replace(",", " ").split()
    turned = [" ".join([*words[cut:], *words[:cut]]) for cut in range(len(words))]
    return list(dict.fromkeys(map(one_word, [student.name, *turned])))
