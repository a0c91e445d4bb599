"""Live progress of a comparison: a bar on a terminal, and a line after each run everywhere."""

from __future__ import annotations

from rich.console import Console

from minidl import parallel
from minidl.cli.compare.runs import Comparison, Contestant, TrainedRun
from minidl.cli.display import LiveBar, say
from minidl.cli.quantities import seconds_text


class ComparisonProgress(LiveBar):
    """Shows the progress of a comparison of `runs` runs; use it in a `with` statement.

    If there are several seeds, a run is named with its seed.
    """

    def __init__(self, console: Console, runs: int, comparison: Comparison) -> None:
        super().__init__(console, f"run 1 of {runs}")
        self.runs, self.comparison, self.done = runs, comparison, 0

    def __call__(self, contestant: Contestant, network: str, now: parallel.Progress) -> None:
        self.show(
            self.done * now.epochs + now.epoch - 1,
            self.runs * now.epochs,
            before=f"run {self.done + 1} of {self.runs}",
            after=f"{contestant.text} on {network}{self._seed(contestant)}: epoch {now.epoch}, loss {now.loss:.3f}",
        )

    def finished(self, run: TrainedRun) -> None:
        """Print how the run has ended."""
        self.done += 1
        how = run.ended or f"{run.accuracy:.2%} after {seconds_text(run.seconds)}"
        name = f"{run.network}, {run.contestant.text}{self._seed(run.contestant)}"
        say(self.console, f"{self.done:>3}/{self.runs} {name}: {how}")

    def _seed(self, contestant: Contestant) -> str:
        return f", seed {contestant.job.seed}" if self.comparison.seeds > 1 else ""
