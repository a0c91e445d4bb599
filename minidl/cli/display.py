"""Print lines, tables and progress bars, in one style for all commands."""

from __future__ import annotations

import math
from time import monotonic
from typing import Self

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from minidl.cli import mpi_job

BAR_WIDTH = 18  # columns
REDRAWN_SECONDS = 0.1  # at least, between two drawings of a bar
LOG_SECONDS = 10.0  # at least, between two lines where there is no terminal
NARROWEST = 80  # columns: on a narrower terminal a table keeps this width or its own


def say(console: Console, text: str, style: str | None = None) -> None:
    """Print the text unchanged: without rich's markup, highlighting and line breaks."""
    console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)


def show(console: Console, table: Table) -> None:
    """Print a table. A narrow terminal breaks its lines, since rich would cut the numbers to "8…"."""
    if console.width < NARROWEST:
        table.width = console.measure(table, options=console.options.update(width=NARROWEST)).maximum
    console.print(table, crop=False)


def results_table(title: str, caption: str) -> Table:
    """An empty table with a rule below its header and a caption below its rows."""
    return Table(
        title=title,
        title_justify="left",
        caption=caption,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )


class LiveBar:
    """Progress as one line: a text, a bar, another text, and an estimate of the real time left.

    On a terminal the line is redrawn, at most ten times a second, and is gone at the end; a terminal of less than 80
    columns has no bar. Elsewhere the line is printed on standard error, at most every ten seconds, with percents in the
    place of the bar. Of the copies that mpiexec starts, rank 0 alone shows it. Use it in a `with` statement.

    Parameters
        console  the terminal; a quiet one shows no bar
        before   text before the bar until the first `show`
        results  where `say` prints; `console` by default
    """

    def __init__(self, console: Console, before: str, results: Console | None = None) -> None:
        self._results = results or console
        self._log = Console(stderr=True, quiet=console.quiet or mpi_job.is_silent())
        self._is_redrawn = _can_redraw(console)
        self._is_narrow = console.width < NARROWEST
        texts = [TextColumn(f"{{task.fields[{name}]}}", markup=False) for name in ("before", "after")]
        self._bar = Progress(
            texts[0],
            *([] if self._is_narrow else [BarColumn(bar_width=BAR_WIDTH)]),
            texts[1],
            console=console,
            auto_refresh=False,  # a thread would take turns with the simulated ranks, which are in this process
            transient=True,
            redirect_stdout=_can_redraw(Console()),
            redirect_stderr=_can_redraw(Console(stderr=True)),
            disable=self._log.quiet or not self._is_redrawn,
        )
        self._task = self._bar.add_task("", total=1, before=before, after="")
        self._drawn = self._begin()
        self._done = -math.inf
        self._first: tuple[float, float] | None = None  # time and `done` from which the time left is estimated

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        """Print a line of the results, which stays above the bar."""
        say(self._results, text)
        self._drawn = self._begin()

    def _begin(self) -> float:
        """The time from which the next drawing waits: a bar is drawn at once, and a log has just got a line."""
        return -math.inf if self._is_redrawn else monotonic()

    def show(self, done: float, total: float, before: str, after: str) -> None:
        """Move the bar to `done` of `total`, never back, and replace both texts."""
        now = monotonic()
        self._done = done = max(done, self._done)
        if self._first is None:
            self._first = (now, done)  # not 0 in a run that is resumed
        if now - self._drawn < (REDRAWN_SECONDS if self._is_redrawn else LOG_SECONDS):
            return
        self._drawn, (since, begin) = now, self._first
        remains = (now - since) * (total - done) / (done - begin) if begin < done < total else 0
        left = f"{', ' if after else ''}{left_text(remains)} left" if remains else ""
        if not self._is_redrawn:
            say(self._log, f"{before} {f'{done / total:.0%} done':^{BAR_WIDTH}} {after}{left}")
            return
        if self._is_narrow:
            before, after = " ".join(before.split()), " ".join(after.split())
        room = self._bar.console.width - len(f"{before} {left} ") - (0 if self._is_narrow else BAR_WIDTH + 1)
        after = after[: max(room, 0)] + left
        self._bar.update(self._task, completed=done, total=total, before=before, after=after, refresh=True)


def left_text(seconds: float) -> str:
    """A rough duration.

    >>> left_text(8.4), left_text(100), left_text(4000), left_text(1e6)
    ('8 s', '2 min', '1 h 7 min', '278 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes < 600 else f"{round(minutes / 60)} h"


def _can_redraw(console: Console) -> bool:
    """Whether a line on it can be redrawn; rich's `is_terminal` is true for a file if FORCE_COLOR is set."""
    return console.file.isatty() and not console.is_dumb_terminal
