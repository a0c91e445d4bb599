"""Eager SGD: an update waits for some of the workers; what comes too late counts in the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from minidl.parallel.quorum import Quorum


@dataclass(frozen=True)
class EagerSGD(Quorum):
    """SGD by partial sums: an update needs a quorum of the P workers, and no gradient is lost.

        coordinator:
            as soon as a quorum of gradients of the present weights have come:
                update by 1/P of the sum of these and of the late ones
                send the quorum's workers the new weights
            for each gradient of weights that are gone: keep it, and send its worker the present weights
        worker:
            for each minibatch: gradient of the mean loss; send it; receive weights

    quorum: "majority", half of the workers rounded up; "solo", whoever comes first; or a number of workers. Here a
    coordinator counts; in the paper, an all-reduce begins when the first worker, or one drawn at random, is ready.
    batch_size: of one gradient. A learning-rate schedule counts every gradient that is used.

    With a quorum of all equal to Synchronous on a minibatch P times as large, as BackupWorkers(0) is. A late gradient
    is of weights that are gone: `report.staleness` counts how old they were.

    Source: Li, Ben-Nun, Di Girolamo, Alistarh and Hoefler, Taming unbalanced training workloads in deep learning with
    partial collective operations (PPoPP 2020), sections 4 and 5.
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
