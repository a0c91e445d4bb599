"""Tables that teachers bring: CSV files as Canvas, Moodle, Excel and LibreOffice write them."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from course.grading.tables.grade_tables import delimiter, text_of

MOST_BYTES = 20 * 2**20


class TableError(ValueError):
    """A file is not the table that was asked for; the text is a sentence with the file's name."""


@dataclass(frozen=True)
class TeachersTable:
    """columns: the headers as they are written. rows: a dictionary a row, by header; what is missing is empty."""

    columns: tuple[str, ...]
    rows: tuple[dict[str, str], ...]


def read_table(path: Path) -> TeachersTable:
    """The table in a CSV file: UTF-8, UTF-16 or Latin-1; comma, semicolon or tab. Raises TableError."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise TableError(f"{path} has more than {MOST_BYTES >> 20} MB: it is no table of a class.")
        content = path.read_bytes()
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}.") from None
    if content[:2] == b"PK":
        raise TableError(f"{path} is a spreadsheet: save it as CSV.")
    text = text_of(content)
    if "\0" in text:
        raise TableError(f"{path} is not text: a CSV file is needed.")
    if not text.strip():
        raise TableError(f"{path} is empty.")
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter(text)))
    except csv.Error as error:
        raise TableError(f"{path} is not a CSV file: {error}.") from None
    filled = [[cell.strip() for cell in line] for line in lines if any(cell.strip() for cell in line)]
    columns = tuple(filled[0])
    if len(named := [column for column in columns if column]) != len(set(named)):
        raise TableError(f"{path} has two columns of one name: {', '.join(columns)}.")
    rows = tuple(dict(zip(columns, [*line, *[""] * (len(columns) - len(line))], strict=False)) for line in filled[1:])
    return TeachersTable(columns, rows)
