"""One-shot averaging: nodes train by themselves from beginning to end; their models are averaged once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from minidl.parallel.run.session import Session
from minidl.parallel.strategy import Strategy


@dataclass(frozen=True)
class OneShotAveraging(Strategy):
    """SGD on p nodes that speak to each other once, at the very end.

        deal the samples to the nodes; give every node the same weights
        on every node, for each minibatch of its own shard, all epochs long:
            gradient of the mean loss over the minibatch
            update this node's own weights
        all-reduce the mean of the nodes' weights

    algorithm: of the all-reduce, as in `comm.all_reduce`; "ordered" gives the same bits on all engines.
    `batch_size` counts the samples of one node's minibatch. `Job(shards="fixed")` is the published algorithm, in which
    a node sees its own shard only; with shards="shuffled" the samples are dealt anew in every epoch.

    Equal to the mean of p serial runs, one on each shard, by whose steps a learning-rate schedule goes. For a convex
    loss that mean is at most as bad as the runs are on average; a network's loss is not convex, and models that have
    gone apart have a mean that may be worse than each. The row of an epoch judges the mean as if training had ended
    there. Batch norm's running statistics are node 0's.

    Source: Zinkevich, Weimer, Smola and Li, Parallelized Stochastic Gradient Descent (NIPS 2010), algorithm 3.
    """

    algorithm: str = "auto"
    is_asynchronous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.check_algorithm()

    def run(self, session: Session) -> None:
        for batch in session.passes():
            session.model.zero_grad()
            session.local_loss(batch).backward()
            session.update()
        session.set_weights(session.comm.all_reduce(session.weights(), op="mean", algorithm=self.algorithm))
        session.record("rounds", session.steps)
