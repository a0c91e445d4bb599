"""Eager SGD: an update waits for some of the workers; what comes too late counts in the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from minidl.parallel.quorum import Quorum


@dataclass(frozen=True)
class EagerSGD(Quorum):
    """SGD by partial sums: an update waits for a quorum of the P workers, and no gradient is lost.

        coordinator:
            as soon as a quorum of gradients have come, of the present weights or of outdated ones:
                update by 1/P of their sum
                send their workers the new weights
        worker:
            for each minibatch: gradient of the mean loss; send it; receive weights

    Parameters
        quorum  how many gradients an update waits for: "majority", half of the workers rounded up; "solo", one; or
                a number of workers. A larger quorum makes fewer, slower updates of fresher gradients.

    Conserved: every gradient is used once; only those that are not ready when the run ends are left.
    Limits: a quorum of all is Synchronous on a minibatch P times as large, as BackupWorkers(0) is.
    Time: for exponential compute times of mean m an update of n of P takes m (H_P - H_(P-n)), H the harmonic numbers:
    for 8 workers 2.718 m (all), 0.635 m (majority), 0.125 m (solo).

    Notes
        batch_size is per gradient. The schedule counts every gradient that is used.
        `report.staleness` counts the gradients by their age in updates.
        A worker whose gradient is late waits for the next update and counts toward its quorum. In the paper it goes on
        with the next minibatch at once, and its gradient is added to that one's.

    References
        Li, Ben-Nun, Di Girolamo, Alistarh and Hoefler, Taming unbalanced training workloads in deep learning with
        partial collective operations (PPoPP 2020, arXiv:1908.04207), sections 4 and 5.
    """

    quorum: str | int = "majority"
    is_late_used: ClassVar[bool] = True

    def __post_init__(self) -> None:
        is_number = isinstance(self.quorum, int) and not isinstance(self.quorum, bool)
        if not is_number and self.quorum not in ("majority", "solo"):
            raise ValueError(f"EagerSGD: quorum must be 'majority', 'solo' or a number of workers, got {self.quorum!r}")

    def needed(self, nodes: int) -> int:
        if isinstance(self.quorum, int):
            return self.quorum
        return 1 if self.quorum == "solo" else (nodes + 1) // 2
