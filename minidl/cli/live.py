"""Live progress of a training run: a bar on a terminal, a plain line an epoch elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from minidl import parallel
from minidl.cluster.trace.recording import Shares

HEADER = "  epoch     loss test loss accuracy samples/s   compute / communicate / wait"
BAR_WIDTH = 18  # of the columns that are not known before the epoch ends


class LiveProgress:
    """Shows the messages of `parallel.train(progress=...)`; use in a `with` statement.

    A line is printed for every epoch. On a terminal the line of the present epoch moves with every step, with a bar
    for the whole run in the place of the test set's columns. Nothing is wider than 80 columns.
    """

    def __init__(self, console: Console, epochs: int) -> None:
        self.console = console
        self.bar = Progress(
            TextColumn("{task.fields[before]}"),
            BarColumn(bar_width=BAR_WIDTH),
            TextColumn("{task.fields[after]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task(
            "", total=None, before="starting the nodes", after="(the first run also compiles its kernels)"
        )

    def __enter__(self) -> LiveProgress:
        self.console.print(HEADER, highlight=False, soft_wrap=True)
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.bar.stop()

    def __call__(self, now: parallel.Progress) -> None:
        loss = now.loss if now.row is None else now.row["loss"]
        before = f"{now.epoch:>3}/{now.epochs:<3} {loss:>8.4f}"
        after = f"{now.samples_per_second:>9,.0f}   {percentages(now.shares)}"
        done = (now.epoch - 1) * now.steps + now.step
        self.bar.update(self.task, total=now.epochs * now.steps, completed=done, before=before, after=after)
        if now.row is not None:
            self.console.print(f"{before} {_test_columns(now.row)} {after}", highlight=False, soft_wrap=True)


def _test_columns(row: dict[str, Any]) -> str:
    return f"{row['test_loss']:>9.4f} {row['accuracy']:>8.2%}"


def percentages(shares: Shares) -> str:
    """The shares of compute, communication and waiting, as the header names them."""
    return f"{shares.compute:.0%} / {shares.communication:.0%} / {shares.waiting:.0%}"
