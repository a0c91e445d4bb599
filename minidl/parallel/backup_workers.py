"""Backup workers: more workers than an update needs, so that nobody waits for the slowest."""

from __future__ import annotations

from dataclasses import dataclass

from minidl.parallel.quorum import Quorum


@dataclass(frozen=True)
class BackupWorkers(Quorum):
    """Synchronous SGD that updates by the first N of N + b gradients, and drops the other b.

        coordinator:
            as soon as N gradients of the present weights have come: update by their mean
                send these workers the new weights
            for each gradient of weights that are gone: drop it, and send its worker the present weights
        worker:
            for each minibatch: gradient of the mean loss; send it; receive weights

    backups: b; the N others are the rest of the nodes. batch_size: of one gradient. An epoch counts the samples of
    the gradients that are used. A learning-rate schedule counts every gradient that is used.

    With b = 0 equal to Synchronous on a minibatch N times as large, up to rounding and with any optimizer (but what a
    parameter has no gradient for counts as zero), if the training set can be dealt in such minibatches. All updates are
    by gradients of the present weights: unlike asynchronous SGD, there is no staleness.

    Source: Chen, Monga, Bengio and Jozefowicz, Revisiting distributed synchronous SGD (arXiv:1604.00981), section 3,
    algorithms 3 and 4.
    """

    backups: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.backups, int) or self.backups < 0:
            raise ValueError(f"BackupWorkers: backups must be a whole number of at least 0, got {self.backups!r}")

    def needed(self, nodes: int) -> int:
        return nodes - self.backups
