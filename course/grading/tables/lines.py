"""The cells of a CSV file, whichever program wrote it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

NAMED_SEPARATOR = re.compile(r'"?sep=(.)"?[,;\t]*(?:\r\n|\r|\n|\Z)')
"""A first line with which Excel names the separator."""


@dataclass(frozen=True)
class Lines:
    """A file as text and as cells.

    encoding: "UTF-8", "UTF-16" or "Windows-1252".
    rows: for each row that is not empty, the number of its first line in the file, and its cells, unchanged.
    """

    text: str
    encoding: str
    separator: str
    rows: Sequence[tuple[int, list[str]]]


def lines_in(data: bytes) -> Lines:
    """The cells in a file; commas, semicolons or tabs separate them. Raises csv.Error.

    >>> lines_in(b'sep=;\\nname;points\\n"O\\'Neil; Zo\\xeb";3,5\\n').rows
    [(2, ['name', 'points']), (3, ["O'Neil; Zoë", '3,5'])]
    """
    text, encoding = decoded(data)
    named = NAMED_SEPARATOR.match(text)
    rest = text[named.end() :] if named else text
    separator = named[1] if named else most_frequent(rest)
    reader = csv.reader(io.StringIO(rest, newline=""), delimiter=separator)
    rows, before = [], int(named is not None)
    for cells in reader:
        if any(cell.strip() for cell in cells):
            rows.append((before + 1, cells))
        before = reader.line_num + int(named is not None)
    return Lines(rest, encoding, separator, rows)


def decoded(data: bytes) -> tuple[str, str]:
    """Bytes as text without a byte order mark, and the encoding; unknown bytes become U+FFFD."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace"), "UTF-16"
    try:
        return data.decode("utf-8-sig"), "UTF-8"
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace"), "Windows-1252"


def most_frequent(text: str) -> str:
    """The separator: the most frequent of comma, semicolon and tab in the first line, outside of quotes."""
    first, is_quoted = [], False
    for character in text.lstrip():
        is_quoted ^= character == '"'
        if character in "\r\n" and not is_quoted:
            break
        if not is_quoted:
            first.append(character)
    return max(",;\t", key=first.count)
