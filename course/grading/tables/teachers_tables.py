"""Tables that teachers bring: CSV files as Canvas, Moodle, nbgrader, Excel and LibreOffice write them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from course.grading.tables.lines import lines_in
from course.plural import counted

MOST_BYTES = 20 * 2**20


class TableError(ValueError):
    """A file is not the expected table; the text is a sentence with the file's name."""


@dataclass(frozen=True)
class TeachersTable:
    """A table with headers.

    columns: the headers; one that is empty is called "column 3", after its place.
    rows: one dictionary per row, by header, with the cells as they are in the file.
    lines: the number of each row's line in the file.
    form: the encoding and the separator, in words.
    """

    columns: tuple[str, ...]
    rows: tuple[dict[str, str], ...]
    lines: tuple[int, ...]
    form: str


def read_table(path: Path) -> TeachersTable:
    """The table in a CSV file: UTF-8, UTF-16 or Windows-1252; comma, semicolon or tab. Raises TableError."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise TableError(f"{path} has more than {MOST_BYTES >> 20} MB: it is no table of a class.")
        content = path.read_bytes()
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}.") from None
    if content[:2] == b"PK":
        raise TableError(f"{path} is a spreadsheet: save it as CSV.")
    try:
        found = lines_in(content)
    except csv.Error as error:
        raise TableError(f"{path} is not a CSV file: {error}.") from None
    if "\0" in found.text:
        raise TableError(f"{path} is not text: a CSV file is needed.")
    if "\ufffd" in found.text and found.encoding != "UTF-8":
        raise TableError(f"{path} is neither UTF-8 nor {found.encoding}: save it as CSV in UTF-8.")
    if not found.rows:
        raise TableError(f"{path} is empty.")
    columns = tuple(header.strip() or f"column {place}" for place, header in enumerate(found.rows[0][1], 1))
    if len(columns) != len(set(columns)):
        raise TableError(f"{path} has two columns of one name: {', '.join(columns)}.")
    rows = []
    for line, cells in found.rows[1:]:
        if len(cells) < len(columns):
            raise TableError(
                f"{path}, line {line} has {counted(len(cells), 'cell')}, and its first line {len(columns)}: complete "
                "it. (A spreadsheet may leave out empty cells at the end; if so, remove the empty columns there.)"
            )
        if surplus := [cell for cell in cells[len(columns) :] if cell.strip()]:
            raise TableError(
                f"{path}, line {line} has {surplus[0][:40]!r} after its last column, {columns[-1]!r}: put text with "
                "commas or semicolons in quotes, or give the column a header in the first line."
            )
        rows.append(dict(zip(columns, cells, strict=False)))
    separator = {",": "commas", ";": "semicolons", "\t": "tabs"}.get(found.separator, repr(found.separator))
    return TeachersTable(
        columns, tuple(rows), tuple(line for line, _ in found.rows[1:]), f"{found.encoding} with {separator}"
    )
