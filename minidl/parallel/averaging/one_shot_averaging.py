"""One-shot averaging: every node trains its own model from beginning to end; the models are averaged once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.parallel.run.session import Session
from minidl.parallel.strategy import Strategy


@dataclass(frozen=True)
class OneShotAveraging(Strategy):
    """SGD on p nodes that communicate once, at the very end.

        deal the samples to the nodes; give every node the same weights
        on every node, for each minibatch of its own shard, for all epochs:
            gradient of the mean loss over the minibatch
            update this node's own weights
        all-reduce the mean of the nodes' weights

    Parameters
        algorithm   of the all-reduce, as in `comm.all_reduce`; "ordered" gives the same bits on all engines

    Limits: the result is the mean of p serial runs, one on each shard; the learning-rate schedule counts the steps of
    such a run. For a convex loss, the loss of the mean is at most the runs' mean loss. A network's loss is not convex:
    the mean of models that have diverged may be worse than each.

    Notes
        batch_size is per node. With `Job(shards="fixed")`, the published algorithm, a node sees its own shard only;
        with shards="shuffled" the samples are dealt anew in every epoch.
        Each epoch is evaluated with the mean model, as if training had ended there.
        Batch-norm running statistics are those of node 0.

    References
        Zinkevich, Weimer, Smola and Li, Parallelized Stochastic Gradient Descent (NIPS 2010), algorithm 3.
    """

    algorithm: AllReduceAlgorithm = "auto"
    is_asynchronous: ClassVar[bool] = True
    resumes_from: ClassVar[str] = "mean"

    def __post_init__(self) -> None:
        self.check_algorithm()

    def run(self, session: Session) -> None:
        for batch in session.shard_batches():
            session.zero_grad()
            session.local_loss(batch).backward()
            session.update()
        session.set_weights(session.comm.all_reduce(session.weights(), op="mean", algorithm=self.algorithm))
        session.record("rounds", session.steps)
