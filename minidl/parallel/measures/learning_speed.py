"""Learning per second: the decrease of the loss per second, which throughput or epochs alone do not show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class LearningSpeed:
    """How fast a run learned, as the product of two factors.

        learning per second = learning per sample * samples per second

    learning_per_sample  decrease of the loss per sample; depends on the minibatch, the learning rate and the optimizer
    samples_per_second   throughput; depends on the nodes and the network

    Each factor can be raised at the cost of the other: a larger minibatch raises the second and lowers the first.

    References
        J. Gonzalez, Distributed deep learning (lecture, UC Berkeley), on metrics.

    >>> LearningSpeed(learning_per_sample=0.001, samples_per_second=5000.0).learning_per_second
    5.0
    """

    learning_per_sample: float
    samples_per_second: float

    @property
    def learning_per_second(self) -> float:
        """Decrease of the loss per second."""
        return self.learning_per_sample * self.samples_per_second


def learning_speed(
    history: Sequence[Mapping[str, Any]], first: int = 0, last: int = -1, loss: str = "loss"
) -> LearningSpeed:
    """Return the learning speed between two rows of a report's `history`, by default from the first to the last.

    loss: the column whose decrease counts as learning, "loss" or "test_loss".
    Raises ValueError if no samples or no seconds lie between the rows, as in a simulation where computing is free.

    >>> rows = [{"loss": 2.0, "samples": 100, "seconds": 1.0}, {"loss": 0.5, "samples": 400, "seconds": 3.0}]
    >>> learning_speed(rows)
    LearningSpeed(learning_per_sample=0.005, samples_per_second=150.0)
    """
    begin, end = history[first], history[last]
    samples, seconds = end["samples"] - begin["samples"], end["seconds"] - begin["seconds"]
    if samples <= 0 or seconds <= 0:
        raise ValueError(
            f"{samples} samples and {seconds} seconds lie between the rows: choose a later row, and in a simulation "
            "give a node (cluster.Node) or a network, so that time passes"
        )
    return LearningSpeed((begin[loss] - end[loss]) / samples, samples / seconds)
