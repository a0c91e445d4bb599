"""Reproduction: the table, the picture and the verdict of one experiment."""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


class Reproduction:
    """The results of one experiment.

    name     the name of its file
    title    what it is about
    folder   where tables, picture and verdicts are written
    """

    def __init__(self, name: str, title: str, folder: Path = RESULTS, console: Console | None = None) -> None:
        self.name, self.title, self.folder = name, title, folder
        self.console = Console() if console is None else console
        self.verdicts: list[tuple[bool, str]] = []
        self._tables = 0
        folder.mkdir(parents=True, exist_ok=True)
        self.console.print(f"[bold]{title}[/bold]")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str = "") -> None:
        """Print the rows, and write them to NAME.csv (further tables to NAME-2.csv and so on)."""
        self._tables += 1
        path = self.folder / f"{self.name}{f'-{self._tables}' if self._tables > 1 else ''}.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([columns, *rows])
        table = Table(*columns, caption=note or None, caption_justify="left")
        for row in rows:
            table.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row))
        self.console.print(table)

    def picture(self, figure: Figure) -> None:
        """Write the picture to NAME.png."""
        figure.savefig(self.folder / f"{self.name}.png")

    def accept(self, holds: bool, sentence: str) -> None:
        """Record whether an effect that must show does; the sentence contains the deciding numbers."""
        self.verdicts.append((bool(holds), sentence))
        self.console.print(f"{'[green]holds[/green]' if holds else '[red]FAILS[/red]'}  {sentence}", highlight=False)

    @property
    def is_accepted(self) -> bool:
        """Whether there is a verdict, and all verdicts hold."""
        return bool(self.verdicts) and all(holds for holds, _ in self.verdicts)


Experiment = Callable[[Reproduction], None]


def run(
    name: str, title: str, experiment: Experiment, folder: Path = RESULTS, console: Console | None = None
) -> Reproduction:
    """Run the experiment, and write its verdicts and its seconds to NAME-verdict.csv."""
    reproduction = Reproduction(name, title, folder, console)
    began = time.perf_counter()
    experiment(reproduction)
    seconds = time.perf_counter() - began
    rows = [(f"{seconds:.0f}", "holds" if holds else "fails", sentence) for holds, sentence in reproduction.verdicts]
    with (folder / f"{name}-verdict.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("seconds", "verdict", "sentence"), *rows])
    reproduction.console.print(f"{seconds:.0f} s; tables, picture and verdict in {folder}")
    return reproduction


def main(file: str, title: str, experiment: Experiment) -> None:
    """Run the experiment of `file` as a command; exit code 1 if a verdict fails."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--folder", type=Path, default=RESULTS, help="where the tables and the picture go")
    reproduction = run(Path(file).stem, title, experiment, parser.parse_args().folder)
    sys.exit(0 if reproduction.is_accepted else 1)
