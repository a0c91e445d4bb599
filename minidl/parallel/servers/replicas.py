"""OfReplicas: the base of strategies whose workers may be split, each over ranks of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.data import Dataset
from minidl.data.loader import Batch
from minidl.nn import Module
from minidl.parallel.job import Job
from minidl.parallel.plan import ParallelPlan
from minidl.parallel.run.partition import IN_REPLICA
from minidl.parallel.run.session import Session
from minidl.parallel.strategy import Strategy, check_strategy


@dataclass(frozen=True)
class OfReplicas(Strategy):
    """Each worker is a replica of the model: on one rank, or split over several by another strategy, `replica`.

    A subclass says what workers do with gradients and weights. `replica` says how the ranks of one worker share the
    model, and computes a gradient on them: `Hybrid(pp=2)` makes each worker a pipeline of two stages. There are as many
    workers as the nodes suffice for. None: a worker is one rank with the whole model.
    """

    replica: Strategy | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.replica is not None:
            name = f"{type(self).__name__}: replica"
            check_strategy(name, self.replica, example="Hybrid(pp=2)")
            self.replica.check_as_replica(name)

    def plan(self, job: Job, nodes: int) -> ParallelPlan:
        return super().plan(job, nodes) if self.replica is None else self.replica.plan(job, nodes)

    def build(self, job: Job, mesh: Mesh[Communicator]) -> Module:
        return super().build(job, mesh) if self.replica is None else self.replica.build(job, mesh)

    def samples(self, dataset: Dataset, mesh: Mesh[Communicator] | None) -> Dataset:
        return super().samples(dataset, mesh) if self.replica is None else self.replica.samples(dataset, mesh)

    def backpropagation(self, session: Session) -> Callable[[Batch], None]:
        return super().backpropagation(session) if self.replica is None else self.replica.backpropagation(session)

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        if self.replica is not None:  # as a run of one worker alone, whose minibatch is `batch_size`
            self.replica.check(job, self.plan(job, nodes).ranks_of_replica)

    def prepared(self, job: Job, nodes: int) -> Self:
        if self.replica is None:
            return self
        return replace(self, replica=self.replica.prepared(job, self.plan(job, nodes).ranks_of_replica))

    def check_one_rank(self, name: str, job: Job, nodes: int) -> None:
        """Raise ValueError if a worker is several ranks, where each must be one rank with the whole model."""
        plan = self.plan(job, nodes)
        if plan.is_split:
            extents = ((axis, getattr(plan, axis)) for axis in IN_REPLICA)
            raise ValueError(
                f"{name}: a worker must be one rank with the whole model, but its replica with "
                f"{' and '.join(f'{axis}={extent}' for axis, extent in extents if extent > 1)} is "
                f"{plan.ranks_of_replica} ranks: leave out replica, or use ParameterServer"
            )
