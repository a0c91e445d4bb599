"""Serial: one node, one model. The reference that every synchronous strategy must equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.data.loader import Batch
from minidl.parallel.job import Job
from minidl.parallel.memory_plan import MemoryPlan, MemoryUnknown
from minidl.parallel.run.minibatches import micro_batches
from minidl.parallel.run.session import Session
from minidl.parallel.strategy import Strategy


@dataclass(frozen=True)
class Serial(Strategy):
    """Minibatch SGD on one node.

        for each minibatch:
            gradient of the mean loss over the minibatch
            update the weights

    Parameters
        shards         1; or p, to add up the gradient as p replicas do: the minibatch is dealt to p shards, whose
                       gradients are computed one after the other and added in order. The weights then equal those of
                       `Synchronous(algorithm="ordered")` on p nodes to the bit, with the same number of threads
        micro_batches  1; or m, to compute each shard in m micro-batches one after the other, as pipelines do and
                       `Synchronous(accumulate=m)`: with their dropout masks, and batch norm over each micro-batch

    So Serial(shards=dp, micro_batches=m) is what a plan of `dp` replicas and m micro-batches must equal, however its
    replicas are split; with the default `Job(shards="shuffled")`, since fixed shards depend on the number of replicas.
    """

    shards: int = 1
    micro_batches: int = 1
    scales_loss: ClassVar[bool] = True
    is_resumable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.check_whole(shards=1, micro_batches=1)

    def check(self, job: Job, nodes: int) -> None:
        if nodes != 1:
            raise ValueError(
                f"Serial trains on one node, not on {nodes}: use one node, or another strategy, such as Synchronous()"
            )

    def memory_plan(self, job: Job, mesh: Mesh[Communicator]) -> MemoryPlan:
        if self.shards > 1:
            raise MemoryUnknown(f"what Serial keeps to add up the gradients of {self.shards} shards is not known")
        return MemoryPlan(job.build_model(), self.micro_batches)

    def run(self, session: Session) -> None:
        for batch in session.batches():
            session.zero_grad()
            if self.shards == 1:
                backward_of_replica(session, batch, 0, self.micro_batches)
            else:
                sharded_backward(session, batch, self.shards, self.micro_batches)
            session.update()


def backward_of_replica(session: Session, batch: Batch, replica: int, count: int) -> None:
    """Backward of one replica's samples, with its random numbers, in `count` micro-batches; empty ones are skipped."""
    for i, micro_batch in enumerate(micro_batches(batch, count)):
        if len(micro_batch.x):
            session.begin_forward(replica, i)
            session.loss(micro_batch).backward()


def sharded_backward(session: Session, batch: Batch, shards: int, count: int) -> None:
    """Backward as p replicas do it: each shard by itself; gradients are added in order."""
    sums: list[np.ndarray | None] = [None] * len(session.parameters)
    buffers: list[np.ndarray] = []
    for i in range(min(shards, len(batch.x))):  # in the ragged last minibatch, the other shards are empty
        session.zero_grad()
        backward_of_replica(session, batch.share(slice(i, None, shards)), i, count)
        for j, parameter in enumerate(session.parameters):
            if parameter.grad is not None:
                sums[j] = parameter.grad if sums[j] is None else sums[j] + parameter.grad
        if i == 0:
            buffers = [buffer.numpy().copy() for buffer in session.model.buffers()]
    for parameter, gradient in zip(session.parameters, sums, strict=True):
        parameter.grad = gradient
    for buffer, first in zip(session.model.buffers(), buffers, strict=True):
        buffer.copy_(first)  # batch norm's running statistics are taken from replica 0
