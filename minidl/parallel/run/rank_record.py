"""RankRecord: what a rank of a training run records and brings back, with its snapshots of weights."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from minidl.cluster.diagnosis.errors import ClusterError
from minidl.kernels import Array
from minidl.nn.experts import RoutingCounts
from minidl.parallel.run.checkpoint import Checkpoint


@dataclass(frozen=True)
class Snapshot:
    """The weights that one rank held at the end of an epoch, all or a slice.

    epoch    epochs done by then
    seconds  training time since the start of the run
    steps    updates of these weights so far
    lr       learning rate by then
    weights  the values
    offset   index of the slice's first element in the flattened weights
    """

    epoch: int
    seconds: float
    steps: int
    lr: float
    weights: Array
    offset: int = 0


@dataclass
class RankRecord:
    """What a rank of a training run records and brings back. A pass is one reading of its shard, or of an epoch.

    digest         hash of the weights that the rank holds at the end
    state          the run's last state, from rank 0, if the nodes evaluated their model together; in an elastic run,
                   every rank's own state; else None, also if the strategy goes on from a checkpoint
    is_unfinished  whether the run is to go on, from `state` or a checkpoint, with other nodes
    steps, seconds updates of its weights and training time since the start of the run, if it is unfinished
    interrupted    the error that ended the run on this rank because another one died
    snapshots      if the nodes did not evaluate together: the weights at the end of each epoch, from their owners
    losses         for each pass, the sum of this node's losses over what counts in them, and how much that is
    buffers        for each pass, the model's buffers (running statistics of batch norm) at its end
    routing        for each pass, by the name of a mixture of experts, what it counted; nothing without mixtures, or
                   where another rank counts the same tokens
    bytes_by_pass  bytes sent since the start, at the end of each pass
    bytes_sent     bytes sent in the whole run
    recorded       what the strategy recorded: a list per name
    """

    digest: str = ""
    state: Checkpoint | None = None
    is_unfinished: bool = False
    steps: int = 0
    seconds: float = 0.0
    interrupted: ClusterError | None = None
    snapshots: list[Snapshot] = field(default_factory=list)
    losses: list[tuple[float, float]] = field(default_factory=list)
    buffers: list[list[Array]] = field(default_factory=list)
    recorded: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    routing: list[dict[str, RoutingCounts]] = field(default_factory=list)
    bytes_by_pass: list[int] = field(default_factory=list)
    bytes_sent: int = 0
