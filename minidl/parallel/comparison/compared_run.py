"""ComparedRun: the result of one run of a comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from minidl.cluster.trace.recording import Shares
from minidl.cluster.trace.trace import Trace
from minidl.parallel.comparison.entrant import Entrant
from minidl.parallel.measures.learning_speed import learning_speed


@dataclass
class ComparedRun:
    """The result of one run: one strategy, with one seed, on one network.

    history     rows as in `parallel.Report`; for a run that ended early, the rows until then
    ended       why the run ended early, or ""
    bytes_sent  by each rank; the nodes come before the servers
    shares      mean over the nodes of their fractions of time
    staleness   by age in updates, the number of gradients applied at that age
    trace       all events, where `compare(keep_traces=True)` keeps them: of the first network and seed
    """

    entrant: Entrant
    network: str
    history: Sequence[Mapping[str, Any]] = field(default_factory=list)
    ended: str = ""
    bytes_sent: list[int] = field(default_factory=list)
    shares: Shares | None = None
    staleness: Counter[int] = field(default_factory=Counter)
    trace: Trace | None = field(default=None, repr=False)

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self.entrant.job.seed

    @property
    def accuracy(self) -> float:
        """Accuracy on the test set after the last epoch; nan without an epoch."""
        return float(self.history[-1]["accuracy"]) if self.history else float("nan")

    @property
    def best_accuracy(self) -> float:
        """The highest accuracy on the test set after an epoch; nan without one."""
        return max((float(row["accuracy"]) for row in self.history), default=float("nan"))

    @property
    def seconds(self) -> float:
        """Time of training until the end of the last epoch, in seconds."""
        return float(self.history[-1]["seconds"]) if self.history else 0.0

    @property
    def bytes_per_node(self) -> float | None:
        """Mean bytes that a node sent; None if the run ended early."""
        return mean(self.bytes_sent[: self.entrant.nodes]) if self.bytes_sent else None

    @property
    def mean_staleness(self) -> float | None:
        """Mean staleness of the gradients that were applied, in updates; None if none was recorded."""
        return mean(self.staleness.elements()) if self.staleness else None

    @property
    def learning_per_second(self) -> float | None:
        """Decrease of the test loss per second from the first epoch to the last; None if no time passed."""
        has_time = len(self.history) > 1 and self.history[-1]["seconds"] > self.history[0]["seconds"]
        return learning_speed(self.history, loss="test_loss").learning_per_second if has_time else None

    def seconds_to(self, accuracy: float) -> float | None:
        """Seconds of training until the end of the first epoch with at least this test accuracy; None without one."""
        return next((row["seconds"] for row in self.history if row["accuracy"] >= accuracy), None)


def mean_shares(shares: Sequence[Shares]) -> Shares:
    """The mean of each share: of computing, communicating and waiting."""
    return Shares(*(mean(column) for column in zip(*shares, strict=True)))
