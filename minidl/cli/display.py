"""Print lines, tables and progress bars, in one style for all commands."""

from __future__ import annotations

from typing import Self

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

BAR_WIDTH = 18  # columns
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
    """A progress bar between two texts. It shows on a terminal only; use it in a `with` statement."""

    def __init__(self, console: Console, before: str, after: str = "") -> None:
        self.console = console
        self.bar = Progress(
            TextColumn("{task.fields[before]}"),
            BarColumn(bar_width=BAR_WIDTH),
            TextColumn("{task.fields[after]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task("", total=None, before=before, after=after)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def show(self, done: float, total: float, before: str, after: str) -> None:
        """Move the bar to `done` of `total`, and replace both texts."""
        self.bar.update(self.task, completed=done, total=total, before=before, after=after)
