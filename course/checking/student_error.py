"""An exception of a student's code as plain data: what it is, on which rank, in which of the student's own lines."""

from __future__ import annotations

import linecache
import os
import re
import sys
import traceback
from collections.abc import Iterable
from types import CodeType
from typing import Any

from course.bootstrap import ROOT

NOT_DEFINED = "NotDefined"

FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+),? in (?P<function>.+)$', re.MULTILINE)


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
            title = self.title(file)
            if title is not None:
                text = linecache.getline(file, line).strip()
                inside = "" if function.startswith("<module>") else f" in {function}"
                return f"{title}, line {line}{inside}" + (f": {text}" if text else "")
        return ""


def described(error: BaseException, sources: Sources) -> dict[str, Any]:
    """What the check is told: kind, type, text, rank and place of an exception."""
    errors = sys.modules.get("minidl.cluster.errors")  # unless it is loaded, no run of several ranks can have failed
    cluster = (errors.ClusterError, errors.Deadlock, errors.CommTimeout) if errors else ((), (), ())
    root = root_cause(error)
    missing = isinstance(error, LookupError) and error.args == (NOT_DEFINED,)
    is_stuck = isinstance(error, cluster[1:])
    return {
        "kind": "not defined" if missing
        else "not attempted" if isinstance(root, NotImplementedError)
        else "stuck" if is_stuck
        else "raised",
        "type": str(type(root).__name__),
        "text": shortened(text_of(error if is_stuck else root), sources),
        "rank": error.rank if isinstance(error, cluster[:1]) else None,
        "place": place_of(error, root, sources),
    }  # fmt: skip


def root_cause(error: BaseException) -> BaseException:
    """What a rank raised, where a run of several ranks failed; else the error itself."""
    cause = getattr(error, "cause", None)
    return root_cause(cause) if isinstance(cause, BaseException) and cause is not error else error


def text_of(error: BaseException) -> str:
    """An exception's text, at most 4,000 characters of it."""
    try:
        return str.__str__(str(error))[:4000]
    except Exception:  # a student's own __str__
        return ""


def shortened(text: str, sources: Sources) -> str:
    """The text without the tracebacks that a failed run appends, and with the student's files by their titles."""
    text = text.partition("\n\nTraceback of rank")[0]
    for file, title in sources.titles.items():
        text = re.sub(re.escape(file) + r":(\d+)", rf"{title}, line \1", text)
    return text


def place_of(error: BaseException, root: BaseException, sources: Sources) -> str:
    """The innermost line of the student's own code at which an exception arose."""
    if isinstance(root, SyntaxError) and sources.title(root.filename or "") and root.lineno:
        return sources.place([(root.filename or "", root.lineno, "<module>")])
    frames = [(frame.filename, frame.lineno or 0, frame.name) for frame in traceback.extract_tb(root.__traceback__)]
    place = sources.place(frames)
    if place or root is error:
        return place
    tracebacks = getattr(error, "tracebacks", {})
    return place_in_text(tracebacks.get(getattr(error, "rank", None), ""), sources)


def place_in_text(text: str, sources: Sources, is_innermost_first: bool = False) -> str:
    """The same, from a traceback's text."""
    frames = [(found["file"], int(found["line"]), found["function"]) for found in FRAME.finditer(text)]
    return sources.place(reversed(frames) if is_innermost_first else frames)


def files_of(code: CodeType) -> set[str]:
    """The files that a function's code comes from, if they are not the project's or a library's."""
    file = code.co_filename
    is_other = file.startswith((str(ROOT / "minidl"), str(ROOT / "course"), sys.prefix, sys.base_prefix, "<frozen"))
    return set() if is_other else {file}
