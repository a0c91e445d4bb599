"""How long a lecture takes to read, counted from its notebook: at most half an hour and 120 visible lines of code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORDS_A_MINUTE, LINES_A_MINUTE, MINUTES_A_PICTURE = 200, 15, 0.5
MOST_MINUTES, MOST_LINES = 30, 120
MOST_OFF = 1.5
"""Minutes by which the stated time may differ: measured outputs have more or fewer words on another day."""

STATED = re.compile(r"Reading time: about (?P<minutes>\d+) minutes")


@dataclass(frozen=True)
class ReadingTime:
    """What a reader goes through.

    words      of prose and of text outputs, tables included
    lines      of code that is not collapsed, without blank lines
    pictures   figures and tables
    """

    words: int
    lines: int
    pictures: int

    @property
    def minutes(self) -> float:
        return self.words / WORDS_A_MINUTE + self.lines / LINES_A_MINUTE + self.pictures * MINUTES_A_PICTURE


def lasting_too_long(root: Path) -> Iterator[str]:
    """Lectures that take too long or state another reading time than is counted."""
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_bytes())["cells"]
        counted = reading_time(cells)
        minutes = f"{counted.minutes:.1f} minutes"
        if counted.minutes > MOST_MINUTES or counted.lines > MOST_LINES:
            yield (
                f"notebooks/{path.name}: {counted.words} words, {counted.lines} visible lines of code, "
                f"{counted.pictures} pictures and tables take {minutes}; at most {MOST_MINUTES} minutes and "
                f"{MOST_LINES} lines (source_hidden=true collapses code that draws or prints)"
            )
        said = [int(match["minutes"]) for cell in cells if (match := STATED.search(" ".join(source(cell).split())))]
        if len(said) != 1 or abs(said[0] - counted.minutes) > MOST_OFF:
            yield f"notebooks/{path.name}: it takes {minutes}, but states {said or 'no reading time'}"


def reading_time(cells: list[dict[str, Any]]) -> ReadingTime:
    """The length of a notebook with these cells."""
    words = lines = pictures = 0
    for cell in cells:
        if cell["cell_type"] == "markdown":
            words += len(source(cell).split())
            continue
        if not cell["metadata"].get("jupyter", {}).get("source_hidden"):
            lines += sum(bool(line.strip()) for line in source(cell).splitlines())
        for output in cell["outputs"]:
            shown = output.get("data", {})
            if any(kind.startswith("image/") for kind in shown):
                pictures += 1
                continue
            text = "".join(shown.get("text/markdown") or shown.get("text/plain") or output.get("text", ""))
            words += len(text.replace("|", " ").replace("---", " ").split())
            pictures += "| --- |" in text
    return ReadingTime(words, lines, pictures)


def source(cell: dict[str, Any]) -> str:
    """A cell's source, which a notebook file may hold in lines."""
    return "".join(cell["source"])
