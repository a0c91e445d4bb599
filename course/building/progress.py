"""The progress of a build: bars in a terminal, elsewhere one line per text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from course.building.sources import Source

LECTURE_SECONDS = 60.0
CELL_SECONDS = 10.0


class BuildProgress:
    """A bar for all texts and one for each running text; a context manager."""

    def __init__(self, texts: int) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[doing]}"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._running: dict[Source, TaskID] = {}
        self._starts: dict[Source, list[float]] = {}
        self._all = self._bars.add_task("all", total=texts, doing=f"0 of {texts}", visible=texts > 1)
        self._count = texts

    def __enter__(self) -> BuildProgress:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def begins(self, source: Source, cells: int) -> None:
        self._running[source] = self._bars.add_task(escape(source.name), total=cells or None, doing="")
        self._starts[source] = []

    def reaches(self, source: Source, cell: int) -> None:
        self._starts[source].append(time.perf_counter())
        self._bars.update(self._running[source], completed=cell, doing=f"cell {cell + 1}")

    def made(self, source: Source, seconds: float) -> None:
        notebooks = ", ".join(path.relative_to(source.root).as_posix() for path in source.notebooks)
        slow = "".join(f"; {complaint}" for complaint in self._slow(source, seconds))
        self._ends(source, lambda: self._console.print(escape(f"{source} -> {notebooks} ({seconds:.1f} s{slow})")))

    def _slow(self, source: Source, seconds: float) -> Iterator[str]:
        """Complaints about a text, or a cell, that takes longer than readers should wait."""
        if seconds > LECTURE_SECONDS:
            yield f"more than {LECTURE_SECONDS:g} s"
        starts = [*self._starts[source], time.perf_counter()]
        for number, (start, end) in enumerate(pairwise(starts), start=1):
            if end - start > CELL_SECONDS:
                yield f"cell {number} took {end - start:.0f} s, more than {CELL_SECONDS:g} s"

    def failed(self, source: Source, message: str, details: str) -> None:
        indented = "".join(f"\n    {line}" for line in details.splitlines())
        self._ends(source, lambda: self._console.print(escape(f"{source}, {message}{indented}"), style="red"))

    def _ends(self, source: Source, tell: Callable[[], None]) -> None:
        """Remove the bar of a text, print its result, and advance the bar of all texts."""
        if source in self._running:
            self._bars.remove_task(self._running.pop(source))
        tell()
        self._bars.advance(self._all)
        done = self._bars.tasks[0].completed
        self._bars.update(self._all, doing=f"{done:g} of {self._count}")
