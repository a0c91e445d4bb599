"""Recognises the student's own lines, and names them as a person does."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable


def as_compiled(cell: str) -> str:
    """A cell without its empty first lines: IPython leaves them out before it numbers the lines.

    >>> as_compiled("\\n  \\nx = 1\\n")
    'x = 1\\n'
    """
    lines = cell.splitlines(keepends=True)
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    return "".join(lines[first:])


class Sources:
    """The files of the student's own code and their titles, such as `cell ring`, `cell [4]` or `mine.py`."""

    def __init__(self) -> None:
        self.titles: dict[str, str] = {}
        self.lines: dict[str, list[str]] = {}
        self.folders: list[str] = []

    def add(self, file: str, title: str, text: str) -> None:
        """Add a cell: its file name in tracebacks, its title, its text."""
        self.titles[file] = title
        self.lines[file] = text.splitlines()
        linecache.cache[file] = (len(text), None, [f"{line}\n" for line in self.lines[file]], file)

    def title(self, file: str) -> str | None:
        """The title of a file of the student's; None for any other file."""
        if file in self.titles:
            return self.titles[file]
        return os.path.basename(file) if any(file.startswith(f"{folder}{os.sep}") for folder in self.folders) else None

    def place(self, frames: Iterable[tuple[str, int, str]]) -> str:
        """The innermost of the student's lines among frames (file, line, function), outermost first; "" for none.

        The function is named unless it has the name of its cell.
        """
        for file, line, function in reversed(list(frames)):
            title = self.title(file)
            if title is not None:
                is_named = function.startswith("<module>") or title == f"cell {function}"
                return self.line(file, line, "" if is_named else f" in {function}")
        return ""

    def line(self, file: str, number: int, inside: str = "") -> str:
        """`cell ring, line 3: comm.send(x)`; "" for a line that is not the student's."""
        title = self.title(file)
        if title is None:
            return ""
        # a grader has cells of this name from several students, and linecache has those of one
        own = self.lines.get(file)
        text = linecache.getline(file, number) if own is None else own[number - 1] if 0 < number <= len(own) else ""
        return f"{title}, line {number}{inside}" + (f": {text.strip()}" if text.strip() else "")
