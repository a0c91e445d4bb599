"""Serial: one node, one model. The reference that every synchronous strategy must equal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minidl.arguments import whole_number
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

    Parameters
        shards  1; or p, to add up the gradient as p nodes do: the minibatch is dealt to p shards, whose gradients are
                computed one after the other and added in order. The weights then equal those of
                `Synchronous(algorithm="ordered")` on p nodes to the bit, with the same number of threads
    """

    shards: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "shards", whole_number("Serial: shards", self.shards, at_least=1))

    @property
    def is_resumable(self) -> bool:
        return True

    def check(self, job: Job, nodes: int) -> None:
        if nodes != 1:
            raise ValueError(
                f"Serial trains on one node, not on {nodes}: use one node, or another strategy, such as Synchronous()"
            )

    def run(self, session: Session) -> None:
        for batch in session.batches():
            session.model.zero_grad()
            if self.shards == 1:
                session.loss(batch).backward()
            else:
                sharded_backward(session, batch, self.shards)
            session.update()


def sharded_backward(session: Session, batch: Batch, shards: int) -> None:
    """Backward as p nodes do it: each shard by itself, with its node's random numbers; gradients are added in order."""
    sums: list[np.ndarray | None] = [None] * len(session.parameters)
    buffers: list[np.ndarray] = []
    for i in range(min(shards, len(batch.x))):  # in the ragged last minibatch, the other shards are empty
        shard = Batch(batch.x[i::shards], batch.y[i::shards], batch.total)
        session.begin_forward(replica=i)
        session.model.zero_grad()
        session.loss(shard).backward()
        for j, parameter in enumerate(session.parameters):
            if parameter.grad is not None:
                sums[j] = parameter.grad if sums[j] is None else sums[j] + parameter.grad
        if i == 0:
            buffers = [buffer.numpy().copy() for buffer in session.model.buffers()]
    for parameter, gradient in zip(session.parameters, sums, strict=True):
        parameter.grad = gradient
    for buffer, first in zip(session.model.buffers(), buffers, strict=True):
        buffer.copy_(first)  # batch norm's running statistics are taken from node 0
