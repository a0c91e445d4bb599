"""Live progress of a comparison: a bar on a terminal, and a plain line a run everywhere."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from minidl import parallel
from minidl.cli.compare.runs import Contestant, Outcome, Terms
from minidl.cli.quantities import seconds_text


class RaceProgress:
    """Shows the progress of a comparison of `runs` runs; use in a `with` statement.

    Where there are several seeds, each run is named with its own.
    """

    def __init__(self, console: Console, runs: int, terms: Terms) -> None:
        self.console, self.runs, self.epochs, self.seeds = console, runs, terms.epochs, terms.seeds
        self.done = 0
        self.bar = Progress(
            TextColumn("{task.fields[run]}"),
            BarColumn(bar_width=18),
            TextColumn("{task.fields[state]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task("", total=runs * self.epochs, run=f"run 1 of {runs}", state="")

    def __enter__(self) -> RaceProgress:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.bar.stop()

    def __call__(self, contestant: Contestant, network: str, now: parallel.Progress) -> None:
        self.bar.update(
            self.task,
            completed=self.done * self.epochs + now.epoch - 1,
            run=f"run {self.done + 1} of {self.runs}",
            state=f"{contestant.text} on {network}{self._seed(contestant)}: epoch {now.epoch}, loss {now.loss:.3f}",
        )

    def finished(self, outcome: Outcome) -> None:
        """Say how the run has ended."""
        self.done += 1
        self.bar.update(self.task, completed=self.done * self.epochs)
        how = outcome.ended or f"{outcome.accuracy:.2%} after {seconds_text(outcome.seconds)}"
        run = f"{outcome.network}, {outcome.contestant.text}{self._seed(outcome.contestant)}"
        self.console.print(
            f"{self.done:>3}/{self.runs} {run}: {how}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )

    def _seed(self, contestant: Contestant) -> str:
        return f", seed {contestant.job.seed}" if self.seeds > 1 else ""
