"""Strategy: the base of all ways to train. One short file each beside this one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from minidl.cluster.collectives import ALL_REDUCE
from minidl.kernels import Array
from minidl.parallel.job import Job

if TYPE_CHECKING:
    from minidl.parallel.run.session import Session


class Strategy:
    """How to train: `run` is what every node does, `serve` what every server does, if there are servers.

    A strategy is a frozen dataclass of settings; each rank gets a copy. Ranks 0 to nodes - 1 are the nodes, the
    servers come after them. `run` is a loop over one of the session's kinds of minibatches:

        session.batches()  parts of common minibatches; all nodes have the same weights, evaluated as the run goes on
        session.parts()    parts of common minibatches; each node has weights of its own
        session.passes()   each node's own minibatches of its own shard, `job.epochs` passes over it
        session.stream()   each node's own minibatches, until `session.finished`: whoever counts them ends the run

    is_asynchronous: whether `batch_size` counts the samples of one gradient, rather than those of all nodes together.
    is_resumable: whether a checkpoint of the weights and the optimizer is all that a run needs to go on.
    algorithm: of the all-reduces of gradients or weights, as in `comm.all_reduce`; a setting of the strategies that
    make any. With "ordered" a run has the same bits on all engines: losses and accuracies are then reduced in that
    order, too.
    """

    servers: int = 0
    algorithm: str = "auto"
    is_asynchronous: ClassVar[bool] = False

    @property
    def is_resumable(self) -> bool:
        return False

    def check(self, job: Job, nodes: int) -> None:
        """Raise ValueError if this strategy cannot train this job on so many nodes."""
        if self.is_asynchronous:
            if (samples := len(job.build_data().train)) < nodes:
                raise ValueError(f"{samples} samples cannot be dealt to {nodes} nodes: use at most {samples} nodes")
        elif job.smallest_batch < nodes:
            raise ValueError(
                f"a minibatch of {job.smallest_batch} samples cannot be shared by {nodes} nodes: "
                f"batch_size must be at least {nodes}"
            )

    def check_algorithm(self) -> None:
        """Raise ValueError if there is no all-reduce of the name that `algorithm` gives."""
        known = ("auto", *ALL_REDUCE)
        if self.algorithm not in known:
            name = type(self).__name__
            raise ValueError(f"{name}: unknown algorithm {self.algorithm!r}: choose one of {', '.join(known)}")

    def run(self, session: Session) -> None:
        """What every node does."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a node does: define run(self, session)")

    def serve(self, session: Session) -> None:
        """What every server does; `session.server` is its number, from 0."""
        raise NotImplementedError(f"{type(self).__name__} does not say what a server does: define serve(self, session)")

    def combine(self, weights: Sequence[Array]) -> list[Array]:
        """The models to judge the run by, made of the nodes' own: their mean. Of several, predictions are averaged."""
        return [np.mean(weights, axis=0, dtype=weights[0].dtype)]
