"""Strategy: the base class of all ways to train; each is one short file in a folder of this package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from minidl.arguments import one_of
from minidl.cluster.collectives import ALL_REDUCE
from minidl.kernels import Array
from minidl.parallel.job import Job
from minidl.parallel.run.session import Session


class Strategy:
    """How to train: every node executes `run`, every server `serve`.

    A strategy is a frozen dataclass of settings; each rank gets a copy. Ranks 0 to nodes - 1 are the nodes, the servers
    come after them. `run` is a loop over one of the session's kinds of minibatches:

        session.batches()  shares of common minibatches; all nodes have the same weights, evaluated after each epoch
        session.parts()    shares of common minibatches; each node has weights of its own
        session.passes()   each node's own minibatches of its own shard, `job.epochs` passes over it
        session.stream()   each node's own minibatches, until `session.finished`, which the rank that counts them sets

    Attributes
        servers          number of servers, in addition to the nodes
        algorithm        all-reduce of gradients or weights, as in `comm.all_reduce`. With "ordered", losses and
                         accuracies are reduced in that order too, so that a run has the same bits on all engines
        is_asynchronous  whether `batch_size` counts the samples of one gradient instead of those of all nodes together
        is_resumable     whether a checkpoint (weights, optimizer, schedule) is enough for a run to go on
    """

    servers: int = 0
    algorithm: str = "auto"
    is_asynchronous: ClassVar[bool] = False

    @property
    def is_resumable(self) -> bool:
        return False

    def check(self, job: Job, nodes: int) -> None:
        """Raise ValueError if this strategy cannot train this job on that number of nodes."""
        if self.is_asynchronous:
            if (samples := len(job.build_data().train)) < nodes:
                raise ValueError(f"{samples} samples cannot be dealt to {nodes} nodes: use at most {samples} nodes")
        elif job.smallest_batch < nodes:
            raise ValueError(
                f"a minibatch of {job.smallest_batch} samples cannot be shared by {nodes} nodes: "
                f"batch_size must be at least {nodes}"
            )

    def check_algorithm(self) -> None:
        """Raise ValueError if `algorithm` is not the name of an all-reduce."""
        one_of(f"{type(self).__name__}: algorithm", self.algorithm, ("auto", *ALL_REDUCE))

    def run(self, session: Session) -> None:
        """The program of every node."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a node does: define run(self, session)")

    def serve(self, session: Session) -> None:
        """The program of every server; `session.server` is its number, from 0."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a server does: define serve(self, session)")

    def combine(self, weights: Sequence[Array]) -> list[Array]:
        """The weights of the models that are evaluated, from those of the nodes: here one, their mean.

        The predictions of several models are averaged.
        """
        return [np.mean(weights, axis=0, dtype=weights[0].dtype)]
