"""Progress: what a run reports to its caller while it goes on."""

from __future__ import annotations

from dataclasses import dataclass

from minidl.cluster.trace.recording import Shares
from minidl.parallel.run.history import HistoryRow


@dataclass(frozen=True)
class Progress:
    """The message to `train(progress=...)`.

    epoch               number of the present epoch, from 1
    epochs              epochs of the run
    step, steps         number of the present step in its epoch, from 1; steps of the epoch
    loss                mean over the first replica's samples of this epoch so far
    samples_per_second  of all nodes together; where each has minibatches of its own, an estimate until the end of the
                        run: as if all were as fast as the reporting rank
    shares              fractions of the time of the reporting rank since the start: computing, communicating, waiting;
                        it is rank 0, or the last stage of the first replica where the model is split
    row                 the new row of the history at the end of an epoch, else None
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    samples_per_second: float
    shares: Shares
    row: HistoryRow | None = None

    @classmethod
    def of_row(cls, row: HistoryRow, epochs: int, shares: Shares) -> Progress:
        """The message for a row that was made after the run."""
        return cls(row["epoch"], epochs, 1, 1, row["loss"], row["samples_per_second"], shares, row)
