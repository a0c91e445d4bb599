"""A table of numbers and classes in a text file, in the spellings in use."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl.data.dataset import DataError

LABELS = ("label", "labels", "class", "target", "y")
"""Names of the column of a table that has the classes; if there is none, the last column has them."""

MISSING = ("", "?", "na", "n/a", "nan", "null")
"""What a cell without a value has."""

EXACT = 2**53
"""Up to here whole numbers are exact in float64."""

ROW_NUMBERS = ("", "id", "index", "unnamed: 0")
"""Names of a column that numbers the samples, which is left out, as is a first column that counts them."""


@dataclass
class Table:
    """A table in text: `names` from its first line, or "column 1", ...; cells by the number of their line."""

    path: Path
    names: list[str]
    is_named: bool
    cells: list[tuple[int, list[str]]]
    number_in: Callable[[str], float | None]

    def numbers(self, places: Sequence[int]) -> NDArray[Any]:
        """The numbers of the columns at these places."""
        x = np.empty((len(self.cells), len(places)))
        for sample, (line, cells) in enumerate(self.cells):
            for i, place in enumerate(places):
                if (value := self.number_in(cells[place])) is None:
                    is_missing = cells[place].strip().lower() in MISSING
                    cure = "fill in a number" if is_missing else "replace words by numbers (pandas.get_dummies does)"
                    raise DataError(
                        f"{self.path}, line {line}: {self.names[place]} is {cells[place]!r}, which is no number"
                        f"{self._others(places, place)}: remove the column or row, {cure}, or name the column label if "
                        "it has the classes"
                    )
                x[sample, i] = value
        if all(any(mark in cells[place] for _, cells in self.cells for place in places) for mark in ".,"):
            raise DataError(f"{self.path} has numbers with commas and with points: keep the decimal ones alone")
        return x

    def _others(self, places: Sequence[int], first: int) -> str:
        """The columns after `first` that have cells without a number, too, in parentheses; "" without any."""
        names = [
            self.names[place]
            for place in places
            if place != first and any(self.number_in(cells[place]) is None for _, cells in self.cells)
        ]
        return f" (nor have all rows one in {', '.join(names)})" if names else ""

    def classes(self, place: int) -> NDArray[Any]:
        """The classes in the column: numbers if all are, and none is too large to be exact."""
        words = [cells[place].strip() for _, cells in self.cells]
        values: Any = [self.number_in(word) for word in words]
        return np.array(words if None in values or max(map(abs, values), default=0) > EXACT else values)

    def one_hot(self) -> list[str]:
        """The names of the last columns, if these have a single 1 in each row and otherwise 0; [] without."""
        ones = np.zeros(len(self.cells))
        for place in range(len(self.names) - 1, 0, -1):
            column = [self.number_in(cells[place]) for _, cells in self.cells]
            if set(column) != {0.0, 1.0}:
                break
            ones += np.array(column, float)
            if (ones == 1).all():
                return self.names[place:]
        return []


def read_table(path: Path) -> Table:
    """The table in a file: separated by commas, semicolons or tabs, with or without names. Raises DataError."""
    text = text_of(path)
    separator = max("\t;,", key=text.lstrip("\n").partition("\n")[0].count)
    number_in = partial(_number, decimal="." if separator == "," else ",")
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    try:
        rows = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise DataError(f"cannot read {path}, line {reader.line_num}: {error}") from None
    if not rows:
        raise DataError(f"{path} is no table: it is empty")
    head = rows[0][1]
    while not head[-1].strip():  # a comma at the end
        head.pop()
    for line, cells in rows:
        while len(cells) > len(head) and not cells[-1].strip():
            cells.pop()
        if len(cells) != len(head):
            raise DataError(f"{path}, line {line}: {len(cells)} cells, but the first line has {len(head)}")
    names = [cell.strip().lower() for cell in head]
    at = place_of_label(names)
    is_named = (
        (names[at] in LABELS and all(cells[at].strip().lower() != names[at] for _, cells in rows[1:]))
        or any(
            number_in(name) is None and name not in MISSING
            for place, name in enumerate(names)
            if place != at or len(names) == 1
        )
        or (len(names) > 3 and names == [str(place) for place in range(len(names))])  # as pandas numbers columns
    )
    return Table(path, names if is_named else numbered(len(names)), is_named, rows[is_named:], number_in)


def numbered(count: int) -> list[str]:
    """The names of columns that have none."""
    return [f"column {place + 1}" for place in range(count)]


def place_of_label(names: list[str]) -> int:
    """The place of the column that has the classes; y next to x is a coordinate."""
    known = [name for name in LABELS if name in names and not (name == "y" and "x" in names)]
    return names.index(known[0]) if known else len(names) - 1


def _number(cell: str, decimal: str) -> float | None:
    """The number in a cell, with a decimal point, or comma if that is `decimal`; None if there is none."""
    try:
        value = float(cell if decimal == "." else cell.replace(decimal, "."))
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in cell else None


def text_of(path: Path) -> str:
    """The contents of a file in UTF-8. Raises DataError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is no text in UTF-8 ({error.reason} at byte {error.start}): save it as UTF-8"
        ) from None
