"""Serial: one node, one model. The truth that every synchronous strategy must equal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minidl.data.loader import Batch
from minidl.parallel.job import Job
from minidl.parallel.run.session import Session
from minidl.parallel.strategy import Strategy


@dataclass(frozen=True)
class Serial(Strategy):
    """Minibatch SGD on one node.

        for each minibatch:
            gradient of the mean loss over the minibatch
            update the weights

    shards: 1, or p to add up the gradient as p nodes do: the minibatch is dealt to p shards, whose gradients are
    computed one after the other and added in order. The weights then equal those of
    `Synchronous(algorithm="ordered")` on p nodes to the bit (at the same number of threads).
    """

    shards: int = 1

    def __post_init__(self) -> None:
        if self.shards < 1:
            raise ValueError(f"Serial: shards must be at least 1, got {self.shards}")

    @property
    def is_resumable(self) -> bool:
        return True

    def check(self, job: Job, nodes: int) -> None:
        if nodes != 1:
            raise ValueError(
                f"Serial trains on one node, not on {nodes}: use one node, or another strategy, such as Synchronous()"
            )

    def run(self, session: Session) -> None:
        backward = self._backward if self.shards == 1 else ShardedBackward(self.shards)
        for batch in session.batches():
            session.model.zero_grad()
            backward(session, batch)
            session.update()

    @staticmethod
    def _backward(session: Session, batch: Batch) -> None:
        session.loss(batch).backward()


class ShardedBackward:
    """Backward as p nodes do it: each shard by itself, with its node's random numbers; gradients are added in order."""

    def __init__(self, shards: int) -> None:
        self.shards = shards

    def __call__(self, session: Session, batch: Batch) -> None:
        sums: list[np.ndarray | None] = [None] * len(session.parameters)
        buffers: list[np.ndarray] = []
        for shard in range(self.shards):
            part = Batch(batch.x[shard :: self.shards], batch.y[shard :: self.shards], batch.total)
            if len(part.x) == 0:
                continue
            session.begin_forward(replica=shard)
            session.model.zero_grad()
            session.loss(part).backward()
            for i, parameter in enumerate(session.parameters):
                if parameter.grad is not None:
                    sums[i] = parameter.grad if sums[i] is None else sums[i] + parameter.grad
            if shard == 0:
                buffers = [buffer.numpy().copy() for buffer in session.model.buffers()]
        for parameter, gradient in zip(session.parameters, sums, strict=True):
            parameter.grad = gradient
        for buffer, first in zip(session.model.buffers(), buffers, strict=True):
            buffer.copy_(first)  # batch norm's running statistics are those of node 0
