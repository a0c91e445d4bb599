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
        text = text_of(path.read_bytes()).removeprefix("\ufeff")
    except FileNotFoundError:
        return GradeTable()
    except OSError:
        return GradeTable(is_one=False)
    head, rest = first_line(text)
    if head.strip('"').startswith("sep="):  # a line of Excel that names the separator
        text = rest
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter(text))
        rows = [row for row in reader if any(row.values())]
    except csv.Error:
        return GradeTable(is_one=False)
    if text.strip() and "student" not in (reader.fieldnames or ()):
        return GradeTable(is_one=False)
    filled = [{name or "more": value or "" for name, value in row.items()} for row in rows]
    is_cut = rows and (None in rows[-1].values() or not text.endswith(("\r", "\n")) or text.count('"') % 2)
    return GradeTable(filled[:-1], {"of": "", **filled[-1]}) if is_cut else GradeTable(filled)


def first_line(text: str) -> tuple[str, str]:
    """The first line, and what follows."""
    line, *rest = re.split(r"\r\n|\r|\n", text, maxsplit=1)
    return line, "".join(rest)


def delimiter(text: str) -> str:
    """The separator: the most frequent of comma, semicolon and tab in the first line, outside of quotes."""
    first, is_quoted = [], False
    for character in text.lstrip():
        is_quoted ^= character == '"'
        if character in "\r\n" and not is_quoted:
            break
        if not is_quoted:
            first.append(character)
    return max(",;\t", key=first.count)


def text_of(data: bytes) -> str:
    """Bytes as text: UTF-8, UTF-16 with a byte order mark, or Windows-1252."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


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
