"""Synchronous data parallelism: each node has the gradient of its part of the minibatch; the sum updates all alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from minidl.cluster.collectives import ALL_REDUCE
from minidl.parallel.buckets import GradientBuckets
from minidl.parallel.session import Session
from minidl.parallel.strategy import Strategy


@dataclass(frozen=True)
class Synchronous(Strategy):
    """Minibatch SGD on p nodes that agree after every minibatch.

        give every node the same weights
        for each minibatch, on every node:
            gradient of this node's part of the mean loss
            all-reduce the gradients, bucket by bucket, as backward completes them
            update the weights: the same on every node

    bucket_mb: gradients are sent in buckets of about so many megabytes (1 MB = 1e6 bytes).
    algorithm: of the all-reduce, as in `comm.all_reduce`: "auto", "ring", "tree" and so on; "ordered" gives the same
    bits as `Serial(shards=p)`.

    Equal to Serial on the whole minibatch up to rounding, batch norm (each node normalises over its own part) and
    dropout (each node has its own random numbers) aside.
    Source: Goyal et al. (arXiv:1706.02677), section 3; Li et al., PyTorch Distributed (arXiv:2006.15704), section 3.2.
    """

    bucket_mb: float = 1.0
    algorithm: str = "auto"
    is_resumable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.bucket_mb > 0:
            raise ValueError(f"Synchronous: bucket_mb must be positive, got {self.bucket_mb}")
        if self.algorithm not in ("auto", *ALL_REDUCE):
            choices = ", ".join(("auto", *ALL_REDUCE))
            raise ValueError(f"Synchronous: unknown algorithm {self.algorithm!r}: choose one of {choices}")

    def run(self, session: Session) -> None:
        for parameter in session.parameters:
            parameter.copy_(session.comm.broadcast(parameter.numpy()))
        buckets = GradientBuckets(session.parameters, session.comm, self.bucket_mb, self.algorithm)
        for batch in session.batches():
            session.model.zero_grad()
            if len(batch.x):  # in the ragged last minibatch a part may be empty
                session.loss(batch).backward()
            buckets.finish()
            session.update()
