"""What a rank of a training run brings back, and the snapshots of weights among it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from minidl.kernels import Array
from minidl.parallel.run.checkpoint import Checkpoint


@dataclass(frozen=True)
class Snapshot:
    """One rank's piece of the weights, from element `offset` of the vector of all, when `epoch` epochs were done.

    seconds: since the run began. steps: updates of these weights so far. lr: the learning rate of the last one.
    """

    epoch: int
    seconds: float
    steps: int
    lr: float
    weights: Array
    offset: int = 0


@dataclass
class RankRecord:
    """What a rank of a training run brings back.

    state: the run's last state, from rank 0, where all nodes have the same weights; else None, and there are snapshots.
    losses: for each pass, the sum of this node's losses and the number of samples. buffers: of the model (the running
    statistics of batch norm) after each pass; of the nodes that have not failed, the first one's hold. bytes_by_pass:
    sent by the end of each pass. recorded: what the strategy has recorded.
    """

    digest: str
    state: Checkpoint | None = None
    snapshots: list[Snapshot] = field(default_factory=list)
    losses: list[tuple[float, int]] = field(default_factory=list)
    buffers: list[list[Array]] = field(default_factory=list)
    recorded: dict[str, list[Any]] = field(default_factory=dict)
    bytes_by_pass: list[int] = field(default_factory=list)
    bytes_sent: int = 0
