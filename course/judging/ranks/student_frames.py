"""Frames with the names and the lines of a student's functions, which run in another process.

The simulation finds out from the frames of its caller in which line a rank is: for who waits for whom, for the order of
the ranks' collectives, for tracebacks. Here these are frames of functions that do nothing but call the next one.
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
"""Different lines, by different ways, from which a rank calls; what it says of more is not kept."""

MOST_CHARACTERS = 1000
MOST_INSTRUCTIONS = 2000


class StudentLines(Sources):
    """What a person calls the lines of one run's frames: of cells by the check's own text, else as the rank says."""

    def __init__(self, cells: Sources) -> None:
        super().__init__()
        self.titles = dict(cells.titles)
        self._texts: dict[tuple[str, int], str] = {}

    def note(self, file: str, line: int, text: str) -> str:
        """The name of a file, for code: one that no reader of lines looks for."""
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
    """The sites of one rank's calls, by the numbers that the rank has given them."""

    def __init__(self, lines: StudentLines) -> None:
        self._lines = lines
        self._known: dict[int, list[Frame]] = {}

    def frames(self, site: Any) -> list[Frame]:
        """The frames of a site: of its number, or of number and description."""
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
    """The code of a function that makes a call in that line, as many instructions behind its beginning."""
    padding = "call; " * instruction  # each is an instruction or two: equal calls of a line are told apart by these
    source = f"def frame(call, arguments, named): {padding}return call(*arguments, **named)"
    (code,) = (constant for constant in compile(source, file, "exec").co_consts if isinstance(constant, CodeType))
    return code.replace(co_name=name, co_qualname=qualified, co_firstlineno=line)
