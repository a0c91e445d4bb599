"""Live progress of a comparison: a bar on a terminal, and a line after each run everywhere."""

from __future__ import annotations

from rich.console import Console

from minidl import parallel
from minidl.cli.display import LiveBar, say
from minidl.plots.style import seconds_text


class ComparisonProgress(LiveBar):
    """Shows the progress of a comparison of `runs` runs; use it in a `with` statement.

    If there are several seeds, a run is named with its seed.
    """

    def __init__(self, console: Console, runs: int, seeds: int) -> None:
        super().__init__(console, f"run 1 of {runs}")
        self.runs, self.seeds, self.done = runs, seeds, 0

    def __call__(self, run: parallel.ComparedRun, now: parallel.Progress | None) -> None:
        seed = f", seed {run.seed}" if self.seeds > 1 else ""
        if now is None:
            self.done += 1
            how = run.ended or f"{run.accuracy:.2%} after {seconds_text(run.seconds)}"
            say(self.console, f"{self.done:>3}/{self.runs} {run.network}, {run.entrant.name}{seed}: {how}")
            return
        self.show(
            self.done * now.epochs + now.epoch - 1,
            self.runs * now.epochs,
            before=f"run {self.done + 1} of {self.runs}",
            after=f"{run.entrant.name} on {run.network}{seed}: epoch {now.epoch}, loss {now.loss:.3f}",
        )
