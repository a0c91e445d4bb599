"""Quorum: a server that updates the weights when enough workers have sent their gradient, whoever they are."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from minidl.kernels import Array
from minidl.parallel.job import Job
from minidl.parallel.run.session import Session
from minidl.parallel.servers.server_loop import Requests, ask, leave
from minidl.parallel.strategy import Strategy

WEIGHTS = "weights"  # a request of a worker that has no gradient yet


class Gradient(NamedTuple):
    """A worker's gradient of its mean loss over so many samples, at the weights after `version` updates."""

    worker: int
    version: int
    samples: int
    gradient: Array


class Abandoned(NamedTuple):
    """A worker has abandoned its minibatch at the weights after `version` updates."""

    version: int


class Quorum(Strategy):
    """The common part of BackupWorkers and EagerSGD: a coordinator takes gradients as they come.

        coordinator:
            for each gradient that comes:
                if its weights are outdated: BackupWorkers drop it, and send its worker the present weights
                otherwise it counts; as soon as `needed` gradients count:
                    update by them, and send their workers the new weights

    A late worker blocks no other. `staleness` records the age in updates of each gradient that is used (0: of the
    present weights), `dropped` that of each other. With `on_failure="continue"`, a run goes on while there are enough
    workers left for an update.

    is_late_used: gradients of outdated weights count as well. Each gradient then has the weight 1/nodes, for any
    quorum; otherwise an update is by the mean of the gradients that it has waited for.
    abandon: after an update the new weights go to all workers at once. A worker that is still computing gets them as
    the early answer to its next request; that request, an Abandoned or a gradient that comes too late, has no other
    answer, so that at most one set of weights is on its way to each worker.
    """

    servers = 1
    is_asynchronous: ClassVar[bool] = True
    is_late_used: ClassVar[bool] = False
    abandon: bool = False

    @abstractmethod
    def needed(self, nodes: int) -> int:
        """How many gradients of the present weights an update waits for."""

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        if not 1 <= self.needed(nodes) <= nodes:
            raise ValueError(
                f"{self} with nodes={nodes}: an update would wait for {self.needed(nodes)} gradients, but it must wait "
                f"for 1 to {nodes}: change the number of nodes or the setting"
            )

    def run(self, session: Session) -> None:
        coordinator = [session.nodes]

        def exchange(request: Gradient | str) -> int:
            [(version, weights, session.finished)] = ask(session.comm, coordinator, [request])
            session.set_weights(weights)
            return int(version)

        version = exchange(WEIGHTS)
        for batch in session.stream():
            session.model.zero_grad()
            session.local_loss(batch).backward()
            version = exchange(Gradient(session.comm.rank, version, len(batch.x), session.gradient()))
        leave(session.comm, coordinator)

    def serve(self, session: Session) -> None:
        needed, total = self.needed(session.nodes), 0
        ready: list[Gradient] = []
        sent: dict[int, int] = {}  # the version of the weights that each worker computes with
        for worker, request in (requests := Requests(session.comm, range(session.nodes))):
            if worker in requests.failed and len(requests.present) < needed and not session.finished:
                raise requests.failed[worker]
            if isinstance(request, Gradient) and not session.finished:
                if request.version == session.steps or self.is_late_used:
                    ready.append(request)
                else:
                    session.record("dropped", session.steps - request.version)
            elif isinstance(request, Abandoned) and not session.finished:
                session.record("abandoned", session.steps - request.version)
            if len(ready) == needed:
                total += sum(one.samples for one in ready)
                self._update(session, ready, total)
                session.processed(total, session.weights)
                ready = []
            for other in sorted(requests.unanswered - {one.worker for one in ready}):
                requests.answer(other, (session.steps, session.weights(), session.finished))
                sent[other] = session.steps
            for other in sorted(self._outdated(session, requests, sent)):
                requests.answer_early(other, (session.steps, session.weights(), session.finished))
                sent[other] = session.steps

    def _outdated(self, session: Session, requests: Requests, sent: dict[int, int]) -> set[int]:
        """The workers that compute with weights that are gone and are to abandon that."""
        if not self.abandon:
            return set()
        computing = requests.present - requests.unanswered - requests.answered_early
        return {worker for worker in computing if sent.get(worker, session.steps) < session.steps}

    def _update(self, session: Session, gradients: list[Gradient], processed: int) -> None:
        """One step by the mean over the samples of these gradients; processed: samples of the run up to then."""
        samples = sum(one.samples for one in gradients)
        scale = len(gradients) / session.nodes if self.is_late_used else 1.0
        total = np.zeros_like(gradients[0].gradient)
        for one in sorted(gradients, key=lambda one: (one.worker, one.version)):
            session.record("staleness", session.steps - one.version)
            total += one.gradient * (scale * one.samples / samples)
        self._step(session, total, processed)

    @staticmethod
    def _step(session: Session, gradient: Array, processed: int) -> None:
        """One step of the optimizer by this gradient; processed: samples of the run up to then, for the schedule."""
        session.set_gradient(gradient)
        for parameter in session.parameters:
            if not parameter.requires_grad:
                parameter.grad = None  # the optimizer passes it over
        session.update(samples=processed)
