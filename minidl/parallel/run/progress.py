"""Progress: what a run tells its caller while it goes on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minidl.cluster.trace.recording import Shares

if TYPE_CHECKING:
    from minidl.parallel.run.session import Session


@dataclass(frozen=True)
class Progress:
    """What rank 0 tells the caller while the run goes on.

    loss: the mean of rank 0's parts of the epoch's minibatches so far. shares: of rank 0's time since the start.
    row: the new row of the history after an epoch, else None.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    samples_per_second: float
    shares: Shares
    row: dict[str, Any] | None = None

    @classmethod
    def of_session(
        cls, session: Session, steps: int, loss: float, samples_per_second: float, row: dict[str, Any] | None
    ) -> Progress:
        """A rank's progress in an epoch of `steps` steps; with a row, at the end of the epoch."""
        epochs, shares = session.job.epochs, session.comm.shares()
        epoch = session.epoch if row else min(session.epoch + 1, epochs)
        return cls(epoch, epochs, session.step + 1, steps, loss, samples_per_second, shares, row)

    @classmethod
    def of_row(cls, row: dict[str, Any], epochs: int, shares: Shares) -> Progress:
        """The message for a row that was made after the run."""
        return cls(row["epoch"], epochs, 1, 1, row["loss"], row["samples_per_second"], shares, row)


def per_second(samples: int, seconds: float) -> float:
    """The throughput; infinite where a simulation has been told neither what work takes nor what messages take."""
    return samples / seconds if seconds > 0 else math.inf
