"""HistoryRow: what a report, a checkpoint and the live progress say about one epoch."""

from __future__ import annotations

import math
from typing import TypedDict


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
