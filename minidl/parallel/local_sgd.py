"""Local SGD: nodes train by themselves for a while, average their models, and go on from the average."""

from __future__ import annotations

from dataclasses import dataclass

from minidl.cluster.collectives import ALL_REDUCE
from minidl.parallel import vector
from minidl.parallel.job import Job
from minidl.parallel.session import Session
from minidl.parallel.strategy import Strategy


@dataclass(frozen=True)
class LocalSGD(Strategy):
    """SGD on p nodes that average their models after every H steps, rather than their gradients after every one.

        give every node the same weights
        for each minibatch, on every node:
            gradient of the mean loss over this node's part
            update this node's own weights
            after every H-th step, and after the last: all-reduce the mean of the nodes' weights, and take it over

    period: H. With T steps there are ceil(T/H) rounds of communication; `report.recorded["rounds"]` has their steps.
    post_local_after: so many epochs are trained with H = 1 first (post-local SGD).
    algorithm: of the all-reduce, as in `comm.all_reduce`.

    In the mean a node counts by the samples it has seen since the last one. With H = 1 and SGD without momentum that is
    Synchronous: a mean of steps along the nodes' gradients is the step along their mean. Momentum and other state of
    the optimizer stays on its node and is not averaged. The running statistics of batch norm are averaged with the
    weights. The model that is judged when an epoch ends between two rounds is the plain mean of the nodes' models.

    Source: Stich, Local SGD Converges Fast and Communicates Little (arXiv:1805.09767), algorithm 1; post-local: Lin et
    al., Don't Use Large Mini-Batches, Use Local SGD (arXiv:1808.07217).
    """

    period: int = 8
    post_local_after: int = 0
    algorithm: str = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.period, int) or self.period < 1:
            raise ValueError(f"LocalSGD: period must be a whole number of at least 1, got {self.period!r}")
        if not isinstance(self.post_local_after, int) or self.post_local_after < 0:
            raise ValueError(
                f"LocalSGD: post_local_after must be a whole number of at least 0, got {self.post_local_after!r}"
            )
        if self.algorithm not in ("auto", *ALL_REDUCE):
            choices = ", ".join(("auto", *ALL_REDUCE))
            raise ValueError(f"LocalSGD: unknown algorithm {self.algorithm!r}: choose one of {choices}")

    def run(self, session: Session) -> None:
        steps, last = 0, steps_of(session.job, len(session.train))
        mine = total = 0  # samples since the last round: this node's, all nodes'
        for batch in session.parts():
            session.model.zero_grad()
            if len(batch.x):  # in the ragged last minibatch a part may be empty
                session.local_loss(batch).backward()
            session.update()
            steps, mine, total = steps + 1, mine + len(batch.x), total + batch.total
            period = 1 if session.epoch < self.post_local_after else self.period
            if steps >= period or session.steps == last:
                self._average(session, mine / total)
                steps = mine = total = 0

    def _average(self, session: Session, weight: float) -> None:
        """Take over the mean of all nodes' models, in which this node's counts by `weight`."""
        session.comm.mark("average")
        buffers = [buffer for buffer in session.model.buffers() if buffer.dtype.kind == "f"]
        tensors = [parameter for parameter in session.parameters if parameter.requires_grad] + buffers
        mean = session.comm.all_reduce(vector.weights(tensors) * weight, algorithm=self.algorithm)
        vector.set_weights(tensors, mean)
        session.record("rounds", session.steps)
        session.comm.mark("data")


def steps_of(job: Job, samples: int) -> int:
    """The minibatches of a whole run on so many training samples."""
    return sum(-(-samples // job.batch_size_of(epoch)) for epoch in range(job.epochs))
