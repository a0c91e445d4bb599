"""Live progress of a training run: a bar on a terminal, a plain line an epoch elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from minidl import parallel

HEADER = "  epoch     loss test loss accuracy samples/s  compute / communicate / wait"


class LiveProgress:
    """Shows the messages of `parallel.train(progress=...)`; use in a `with` statement.

    On a terminal a bar moves with every step, and a line is printed for every epoch; elsewhere only the lines.
    """

    def __init__(self, console: Console, epochs: int) -> None:
        self.console = console
        self.bar = Progress(
            TextColumn("epoch {task.fields[epoch]}/{task.fields[epochs]}"),
            BarColumn(bar_width=24),
            TextColumn("loss {task.fields[loss]:.4f}  {task.fields[speed]:,.0f} samples/s  {task.fields[shares]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task(
            "", total=None, epoch=1, epochs=epochs, loss=float("nan"), speed=0.0, shares="starting the nodes"
        )

    def __enter__(self) -> LiveProgress:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.bar.stop()

    def __call__(self, now: parallel.Progress) -> None:
        shares = _percentages(now.shares)
        self.bar.update(
            self.task,
            total=now.epochs * now.steps,
            completed=(now.epoch - 1) * now.steps + now.step,
            epoch=now.epoch,
            loss=now.loss,
            speed=now.samples_per_second,
            shares=shares,
        )
        if now.row is not None:
            if now.row["epoch"] == 1 or not self._header_shown:
                self.console.print(HEADER, highlight=False)
                self._header_shown = True
            self.console.print(_line(now.row, now.epochs, shares), highlight=False)

    _header_shown = False


def _line(row: dict[str, Any], epochs: int, shares: str) -> str:
    return (
        f"{row['epoch']:>3}/{epochs:<3} {row['loss']:>8.4f} {row['test_loss']:>9.4f} {row['accuracy']:>8.2%} "
        f"{row['samples_per_second']:>9,.0f}   {shares}"
    )


def _percentages(shares: Any) -> str:
    return f"{shares.compute:.0%} / {shares.communication:.0%} / {shares.waiting:.0%}"
