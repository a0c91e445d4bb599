"""Quorum: a server that updates the weights as soon as enough workers have sent a gradient."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from minidl.kernels import Array
from minidl.parallel.job import Job
from minidl.parallel.run.session import Session
from minidl.parallel.servers.keys import Layout
from minidl.parallel.servers.replicas import OfReplicas
from minidl.parallel.servers.requests import Requests
from minidl.parallel.servers.worker import Worker

FETCH = (None, 0, 0.0, None)  # the first request: a worker has no weights yet


class Quorum(OfReplicas):
    """The common base of BackupWorkers and EagerSGD: a coordinator counts gradients in order of arrival.

        coordinator:
            for each gradient:
                if it is of outdated weights: BackupWorkers drop it, and send its worker the present weights
                otherwise it counts; as soon as `needed` gradients count:
                    update by them, and send their workers the new weights

    A late worker blocks no other. With `on_failure="continue"`, a run goes on while there are enough workers left for
    an update. A worker's request is (version, samples, counted, gradient): the number of updates of its weights, the
    size of its minibatch, how much of it counts, and the gradient of the mean loss, or None if it has abandoned the
    minibatch.

    Attributes
        is_late_used   True: gradients of outdated weights count, and each has the weight 1/workers
                       False: they are dropped, and an update is by the mean of the gradients that it has waited for
        abandon        True: after an update the new weights go to all workers at once. A worker that is still computing
                       gets them as the answer to its next request, in advance; so at most one set of weights is on its
                       way to each worker

    `report.recorded` has, on the coordinator, the ages in updates of the gradients that are used ("staleness"; 0: of
    the present weights), "dropped" and "abandoned".
    """

    servers = 1
    is_asynchronous: ClassVar[bool] = True
    is_late_used: ClassVar[bool] = False
    abandon: bool = False

    @abstractmethod
    def needed(self, nodes: int) -> int:
        """The number of gradients that an update waits for."""

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        workers = self.plan(job, nodes).dp
        if not 1 <= self.needed(workers) <= workers:
            raise ValueError(
                f"{type(self).__name__} with {workers} workers: an update would wait for {self.needed(workers)} "
                f"gradients, but it must wait for 1 to {workers}: change the number of nodes or the setting"
            )

    def run(self, session: Session) -> None:
        worker = Worker(session, Layout(session.model, servers=1))
        version, backpropagate = self._exchange(session, worker, FETCH), self.backpropagation(session)
        for batch in session.batches_until_finished():
            session.zero_grad()
            backpropagate(batch)
            session.partition.sum_tied_gradients()
            version = self._exchange(session, worker, (version, len(batch.x), batch.counted, session.gradient()))
        worker.leave()

    def serve(self, session: Session) -> None:
        needed, total = self.needed(session.replicas), 0
        ready: dict[int, Any] = {}  # the requests with the gradients of the next update, by worker
        sent: dict[int, int] = {}  # the version of the weights that each worker was sent last
        for worker, request in (loop := Requests(session, Layout(session.model, servers=1))):
            if worker in loop.failed and len(loop.present) < needed and not session.finished:
                raise loop.failed[worker]
            version, _, _, gradient = request or FETCH
            if version is not None and not session.finished:
                if gradient is None:
                    session.record("abandoned", session.steps - version)
                elif version < session.steps and not self.is_late_used:
                    session.record("dropped", session.steps - version)
                else:
                    ready[worker] = request
            if len(ready) == needed:
                gradients = [ready.pop(one) for one in sorted(ready)]
                total += sum(samples for _, samples, _, _ in gradients)
                self._update(session, gradients, total)
                session.processed(total, session.weights)
            idle = loop.waiting.keys() - ready.keys()
            computing = loop.present - loop.waiting.keys() - loop.ahead if self.abandon else set()
            outdated = {one for one in computing if sent.get(one, session.steps) < session.steps}
            for other in [*sorted(idle), *sorted(outdated)]:
                loop.answer(other, (session.steps, session.weights(), session.finished))
                sent[other] = session.steps

    @staticmethod
    def _exchange(session: Session, worker: Worker, request: Any) -> int:
        """Send a request, and take over the weights of the answer; returns their version."""
        [(version, _, session.finished)], weights = worker.ask(request)
        assert weights is not None
        session.set_weights(weights)
        return int(version)

    def _update(self, session: Session, gradients: Sequence[Any], processed: int) -> None:
        """One step by the mean over what counts in these gradients; processed: samples of the run up to then."""
        counted_of_all = sum(counted for _, _, counted, _ in gradients) or 1.0
        scale = len(gradients) / session.replicas if self.is_late_used else 1.0
        total = np.zeros_like(gradients[0][-1])
        for version, _, counted, gradient in gradients:
            session.record("staleness", session.steps - version)
            total += gradient * (scale * counted / counted_of_all)
        self._step(session, total, processed)

    @staticmethod
    def _step(session: Session, gradient: Array, processed: int) -> None:
        """One step of the optimizer by this gradient; processed: samples of the run up to then, for the schedule."""
        session.set_gradient(gradient)
        session.update(samples=processed)
