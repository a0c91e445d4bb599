"""Frames with the names and lines of a student's functions, which run in another process.

The simulation reads the line of a rank from its caller's frames: for wait-for tables, for the order of collectives, for
tracebacks. Here these frames belong to functions that only call the next one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from course.sandbox.errors.sources import Sources
from course.sandbox.exchange.plain_data import DamagedError, writable
from course.sandbox.ranks.rank_process import MOST_FRAMES

Frame = Callable[[Callable[..., Any], list[Any], dict[str, Any]], Any]

MOST_SITES = 10_000
"""Different call paths of a rank that are kept; further ones are not stored."""

MOST_CHARACTERS = 1000
MOST_INSTRUCTIONS = 2000


class StudentLines(Sources):
    """Names for the lines of one run's frames: cells by the check's own text, other files as the rank reports them."""

    def __init__(self, cells: Sources) -> None:
        super().__init__()
        self.titles, self.lines = dict(cells.titles), dict(cells.lines)
        self._texts: dict[tuple[str, int], str] = {}

    def note(self, file: str, line: int, text: str) -> str:
        """The file name for a code object: no existing file, so that nothing reads lines from it."""
        if file in self.titles and (file, line) not in self._texts:
            return file
        name = file if file in self.titles else f"<{os.path.basename(file)}>"
        self.titles.setdefault(name, name)
        self._texts[name, line] = text
        return name

    def line(self, file: str, number: int, inside: str = "") -> str:
        text = self._texts.get((file, number))
        if text is None:
            return super().line(file, number, inside)
        place, colon, rest = text.partition(": ")
        return f"{place}{inside}{colon}{rest}"


class Sites:
    """The call sites of one rank, by the numbers that the rank assigned to them."""

    def __init__(self, lines: StudentLines) -> None:
        self._lines = lines
        self._known: dict[int, list[Frame]] = {}

    def frames(self, site: Any) -> list[Frame]:
        """The frames of a site, which is sent as its number, the first time with its description."""
        match site:
            case int(number):
                return self._known.get(number, [])
            case [int(number), [*described]]:
                frames = [self._frame(one) for one in described[:MOST_FRAMES]]
                if len(self._known) < MOST_SITES:
                    self._known[number] = frames
                return frames
        raise DamagedError("no site")

    def _frame(self, described: Any) -> Frame:
        match described:
            case [str(file), str(name), str(qualified), int(line), int(instruction), str(text)]:
                texts = [writable(each[:MOST_CHARACTERS]).replace("\0", "") for each in (file, name, qualified, text)]
                if not 0 < line < 1 << 30:
                    line = 1
                file = self._lines.note(texts[0], line, texts[3])
                return FunctionType(code_at(file, texts[1], texts[2], line, instruction // 2 % MOST_INSTRUCTIONS), {})
        raise DamagedError("no frame")


@lru_cache(maxsize=4096)
def code_at(file: str, name: str, qualified: str, line: int, instruction: int) -> CodeType:
    """The code of a function that makes a call at that line and instruction offset."""
    padding = "call; " * instruction  # one or two instructions each: they distinguish equal calls in one line
    source = f"def frame(call, arguments, named): {padding}return call(*arguments, **named)"
    (code,) = (constant for constant in compile(source, file, "exec").co_consts if isinstance(constant, CodeType))
    return code.replace(co_name=name, co_qualname=qualified, co_firstlineno=line)
