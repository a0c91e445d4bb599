"""TensorBoard: a run's rows as scalars, for `tensorboard --logdir`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Self

from minidl.parallel.run.history import Progress

SCALARS = {
    "loss/training": "loss",
    "loss/test": "test_loss",
    "accuracy/test": "accuracy",
    "speed/samples_per_second": "samples_per_second",
    "traffic/bytes_sent_by_node_0": "bytes",
    "learning_rate": "lr",
}
"""By the name in TensorBoard, the column of `HistoryRow`."""


def summary_writer() -> Any:
    """The class of tensorboardX that writes; ModuleNotFoundError says what to install."""
    try:
        from tensorboardX import SummaryWriter
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "files for TensorBoard are written by tensorboardX: pip install 'minidl[tensorboard]'"
        ) from None
    return SummaryWriter


class TensorBoard:
    """Writes the row of each epoch for TensorBoard, against the number of samples; give it to `parallel.train`.

    Parameters
        folder  where the event file is written; several runs are compared if their folders lie in one

    Raises
        ModuleNotFoundError  the extra `tensorboard` is not installed

    A number that is not finite (the accuracy of a model without classes) is left out. The file is complete after
    `close` or at the end of a `with` statement:

        with parallel.TensorBoard("runs/first") as tensorboard:
            parallel.train(job, progress=tensorboard)
    """

    def __init__(self, folder: str | Path) -> None:
        self._writer = summary_writer()(str(folder))

    def __call__(self, now: Progress) -> None:
        """Take a message of the run; only those at the end of an epoch are written."""
        if now.row is None:
            return
        for name, column in SCALARS.items():
            value = float(now.row[column])  # type: ignore[literal-required]
            if math.isfinite(value):
                self._writer.add_scalar(name, value, now.row["samples"])

    def close(self) -> None:
        """Write what has not been written yet."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
