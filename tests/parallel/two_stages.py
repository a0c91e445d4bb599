"""TwoStages: the smallest strategy that splits a model, written against the docstrings of `Strategy` alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from minidl import Tensor, backward, nn
from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.parallel import Job, ParallelPlan, Session, Strategy, micro_batches


@dataclass(frozen=True)
class TwoStages(Strategy):
    """Each replica is two ranks: the first has the first half of the stages, the second the others and the loss."""

    micro_batches: int = 1
    is_resumable = True

    def plan(self, job: Job, nodes: int) -> ParallelPlan:
        return ParallelPlan(dp=nodes // 2, pp=2, micro_batches=self.micro_batches)

    def build(self, job: Job, mesh: Mesh[Communicator]) -> nn.Module:
        with nn.building(lambda model: half(model, mesh.coordinates["pp"])):
            return job.build_model()

    def run(self, session: Session) -> None:
        for batch in session.batches():
            session.model.zero_grad()
            for i, micro_batch in enumerate(micro_batches(batch, self.micro_batches)):
                if len(micro_batch.x):  # in the ragged last minibatch one may be empty
                    session.begin_forward(session.replica, i)
                    self.forward_and_backward(session, micro_batch)
            for parameter in session.parameters:  # the sum over the replicas; one without samples has no gradient
                gradients = [grad for grad in session.mesh["dp"].all_gather(parameter.grad) if grad is not None]
                parameter.grad = sum(gradients[1:], gradients[0]) if gradients else None
            session.update()

    def forward_and_backward(self, session: Session, batch: Any) -> None:
        pipeline, mine = session.mesh["pp"], half(session.model, session.mesh.coordinates["pp"])
        if pipeline.rank == 0:
            with session.weighing(batch):
                out = nn.run_stages(mine, batch.x)
            pipeline.send(out.numpy(), 1)
            backward([out], [pipeline.recv(1)])
        else:
            x = Tensor(pipeline.recv(0), requires_grad=True)
            with session.weighing(batch):
                out = nn.run_stages(mine, x)
            mean = session.mean_loss(out, batch)
            (mean * batch.weight).backward()
            pipeline.send(x.grad, 0)

    def backpropagation(self, session: Session) -> Callable[[Any], None]:
        return partial(self.forward_and_backward, session)

    def predict(self, session: Session, x: Any) -> Tensor | None:
        pipeline, mine = session.mesh["pp"], half(session.model, session.mesh.coordinates["pp"])
        if pipeline.rank == 1:
            return nn.run_stages(mine, Tensor(pipeline.recv(0)))
        pipeline.send(nn.run_stages(mine, x).numpy(), 1)
        return None


def half(model: nn.Module, which: int) -> Sequence[Any]:
    """The first half of the model's stages (0), or the others (1)."""
    stages = model.stages()
    middle = (len(stages) + 1) // 2
    return stages[middle:] if which else stages[:middle]
