"""HistoryRow, what a report and a checkpoint say about one epoch; Progress, what a run reports while it goes on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypedDict

from minidl.cluster.trace.recording import Shares


class HistoryRow(TypedDict):
    """One epoch of a run, as a dict: a row of `report.history` and a line of metrics.csv, with these columns.

    Columns
        epoch               number of the epoch, from 1
        loss                mean over the samples of the epoch, each before the update that it contributes to; nan if
                            the strategy has counted none
        test_loss           mean over the test set after the epoch; nan, as the accuracy, if no label of it counts
        accuracy            fraction of the test set's labels that are the likeliest class, 0 to 1; nan if the targets
                            are no classes
        seconds             training time since the start: that before `resume` counts, evaluation does not; measured,
                            or virtual in a simulation
        samples_per_second  of all nodes together: in this epoch, where the nodes evaluate their model together after
                            each epoch; else since the start. Infinite if no time passed, as in a simulation without
                            costs of work and messages
        bytes               sent by rank 0 since the start; evaluation does not count
        lr                  learning rate of the optimizer's first group after the epoch
        steps               updates of the weights since the start
        samples             processed by all nodes together since the start

    Where nodes do not stop for evaluation (with a parameter server, or weights of their own), the rows are made after
    the run, from the weights at the end of each epoch.
    """

    epoch: int
    loss: float
    test_loss: float
    accuracy: float
    seconds: float
    samples_per_second: float
    bytes: int
    lr: float
    steps: int
    samples: int


def per_second(samples: int, seconds: float) -> float:
    """The throughput in samples per second; infinite if no time passed."""
    return samples / seconds if seconds > 0 else math.inf


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
