"""Which lines are the student's own, and what a person calls where they stand."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable


class Sources:
    """Which files hold the student's own code, and what a person calls them: `cell ring`, `In[4]`, `mine.py`."""

    def __init__(self) -> None:
        self.titles: dict[str, str] = {}
        self.folders: list[str] = []

    def add(self, file: str, title: str, text: str) -> None:
        """A cell: its file's name in tracebacks, its title, its text."""
        self.titles[file] = title
        linecache.cache[file] = (len(text), None, [f"{line}\n" for line in text.splitlines()], file)

    def title(self, file: str) -> str | None:
        """What to call a file of the student's; None for anybody else's."""
        if file in self.titles:
            return self.titles[file]
        return os.path.basename(file) if any(file.startswith(f"{folder}{os.sep}") for folder in self.folders) else None

    def place(self, frames: Iterable[tuple[str, int, str]]) -> str:
        """The last of the student's own lines among frames (file, line, function), outermost first; "" if none is."""
        for file, line, function in reversed(list(frames)):
            if self.title(file) is not None:
                return self.line(file, line, "" if function.startswith("<module>") else f" in {function}")
        return ""

    def line(self, file: str, number: int, inside: str = "") -> str:
        """`cell ring, line 3: comm.send(x)`; "" for a line that is not the student's."""
        title, text = self.title(file), linecache.getline(file, number).strip()
        return "" if title is None else f"{title}, line {number}{inside}" + (f": {text}" if text else "")
