"""Live progress of a training run: a bar on a terminal, and a line after each epoch everywhere."""

from __future__ import annotations

from typing import Self

from rich.console import Console

from minidl import parallel
from minidl.cli.display import LiveBar, say

HEADER = "  epoch     loss test loss accuracy samples/s  a node's compute/communicate/wait"


class TrainingProgress(LiveBar):
    """Shows the messages of `parallel.train(progress=...)`; use it in a `with` statement.

    A line is printed after every epoch. On a terminal the line of the current epoch changes with every step; a bar for
    the whole run stands in the columns of the test set, whose values are not known yet. No line is wider than 80
    columns.
    """

    def __init__(self, console: Console) -> None:
        super().__init__(console, "starting the nodes")

    def __enter__(self) -> Self:
        say(self.console, HEADER)
        return super().__enter__()

    def __call__(self, now: parallel.Progress) -> None:
        loss = now.loss if now.row is None else now.row["loss"]
        shares = f"{now.shares.compute:.0%} / {now.shares.communication:.0%} / {now.shares.waiting:.0%}"
        before = f"{now.epoch:>3}/{now.epochs:<3} {loss:>8.4f}"
        after = f"{now.samples_per_second:>9,.0f}   {shares}"
        self.show((now.epoch - 1) * now.steps + now.step, now.epochs * now.steps, before, after)
        if now.row is not None:
            of_test_set = f"{now.row['test_loss']:>9.4f} {now.row['accuracy']:>8.2%}"
            say(self.console, f"{before} {of_test_set} {after}")
