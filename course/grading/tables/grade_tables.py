"""CSV tables that spreadsheets show correctly, and that can be read after a spreadsheet has saved them."""

from __future__ import annotations

import csv
import errno
import io
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course.grading.tables.lines import lines_in
from course.whole_file import replace

MOST_IN_CELL = 30_000
"""Characters of a cell; a spreadsheet takes 32,767."""

FORMULA = re.compile(r"((?:\A|[;\t\r\n])[ \v\f\0\xa0\ufeff\u200b]*)(?=[=+\-@＝＋－＠])")  # noqa: RUF001
"""Where a formula would begin in a cell; Excel accepts the wide signs as well."""

Row = Mapping[str, Any]


def content_of(rows: Iterable[Row], columns: Sequence[str], with_head: bool = True) -> bytes:
    """The rows as CSV in UTF-8 with a byte order mark, which Excel needs; no cell is a formula."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=columns)
    if with_head:
        writer.writeheader()
    writer.writerows({name: harmless(value) for name, value in row.items()} for row in rows)
    return text.getvalue().encode("utf-8-sig" if with_head else "utf-8")


def write(rows: Iterable[Row], path: Path, columns: Sequence[str]) -> None:
    """Write a table, whole or not at all."""
    replace(path, content_of(rows, columns))


def append(rows: Iterable[Row], path: Path, columns: Sequence[str]) -> None:
    """Add rows to a table, all of them or none."""
    content = content_of(rows, columns, with_head=not path.exists())
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        before = os.fstat(descriptor).st_size
        try:
            if os.write(descriptor, content) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.ftruncate(descriptor, before)
            raise
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class GradeTable:
    """The content of a file.

    rows: the complete rows.
    cut: the last row, if it may have been cut off.
    is_one: whether the file could be read as a table.
    """

    rows: Sequence[dict[str, str]] = ()
    cut: dict[str, str] | None = None
    is_one: bool = True

    @property
    def with_points(self) -> Sequence[dict[str, str]]:
        """The rows whose points are complete."""
        return [*self.rows, self.cut] if self.cut and self.cut["of"] else self.rows


def read(path: Path) -> GradeTable:
    """A table as Excel or LibreOffice may have saved it; an empty one if there is no such file.

    Separators, quotes, line ends and the encoding may have changed.
    """
    try:
        lines = lines_in(path.read_bytes())
    except FileNotFoundError:
        return GradeTable()
    except (OSError, csv.Error):
        return GradeTable(is_one=False)
    if not lines.rows:
        return GradeTable()
    (_, head), *rest = lines.rows
    if "student" not in head:
        return GradeTable(is_one=False)
    rows = [
        dict.fromkeys(head, "") | dict(zip(head, cells, strict=False))
        | ({"more": str(cells[len(head) :])} if len(cells) > len(head) else {})
        for _, cells in rest
    ]  # fmt: skip
    is_cut = rows and (
        len(rest[-1][1]) < len(head) or not lines.text.endswith(("\r", "\n")) or lines.text.count('"') % 2
    )
    return GradeTable(rows[:-1], {"of": "", **rows[-1]}) if is_cut else GradeTable(rows)


def number(cell: str) -> float | None:
    """The number in a cell, with decimal point or comma; None if the cell is empty. Raises ValueError."""
    text = cell.strip().strip("'").replace("\u2212", "-").replace(",", ".").strip()
    if not text:
        return None
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def same_cell(cell: Any) -> str:
    """A cell in a normal form: numbers with 12 digits, runs of blanks as one."""
    text = " ".join(str(cell).split())
    try:
        return text if (value := number(text)) is None else f"{value:.12g}"
    except ValueError:
        return text


def harmless(value: Any) -> Any:
    """A text with an apostrophe before each beginning of a formula (OWASP, CSV injection); a very long one is cut.

    A formula may also begin after a semicolon, a tab or a line end: a spreadsheet with semicolons as separators splits
    there, even within quotes. Half a surrogate pair, which no file can hold, is written as its escape.
    """
    if not isinstance(value, str):
        return value
    value = value.encode("utf-8", "backslashreplace").decode("utf-8")
    if len(value) > MOST_IN_CELL:
        value = f"{value[:MOST_IN_CELL]} … (cut here)"
    value = FORMULA.sub(r"\1'", value)
    return f"'{value}" if value.startswith(("\t", "\r")) else value


def original(cell: str) -> str:
    """The text of a cell without the apostrophe that `harmless` put before it."""
    text = cell.strip()
    return text[1:] if text.startswith("'") and harmless(text[1:]) == text else text
