"""Parameter servers: workers fetch the weights and push gradients, each at its own pace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from minidl.arguments import flag, whole_number
from minidl.kernels import Array
from minidl.nn import Module
from minidl.parallel.job import Job
from minidl.parallel.run.learner import LAYERWISE
from minidl.parallel.run.session import Session
from minidl.parallel.servers.bounded_staleness import Clocks
from minidl.parallel.servers.keys import Layout
from minidl.parallel.servers.requests import Requests
from minidl.parallel.servers.worker import Worker, check_not_split
from minidl.parallel.strategy import Strategy


@dataclass(frozen=True)
class ParameterServer(Strategy):
    """Asynchronous SGD: every gradient updates the weights as soon as it arrives.

        server, for its slice of the weights:
            for each gradient, in order of arrival:
                update the weights with it
                send its worker the weights, as soon as the bound on the staleness allows
        worker:
            fetch the weights
            for each minibatch:
                gradient of the mean loss; add it to the sum to push
                after every push_every minibatches: push the sum, and begin a new one
                after every fetch_every minibatches: fetch the weights; else step this copy of them: w -= lr gradient

    Parameters
        servers           number of servers, default 1; each holds a slice of all weights and the job's optimizer for
                          it, so more servers share the traffic
        fetch_every       minibatches between fetches, default 1; a larger value: fewer messages, staler gradients
        push_every        minibatches between pushes, default 1; a larger value: fewer messages, larger updates
        staleness         bound in pushes: a worker that has pushed c times continues when every worker has pushed
                          c - staleness times; needs fetch_every = push_every; None, the default: no worker waits;
                          0: all are in step; the first weights are sent when every worker has asked for them
        staleness_aware   True: divide the learning rate by the gradient's staleness; default False
        locked            True: serve one worker at a time, on all servers together
                          False: default; a worker may receive slices of different age
        warm_start        updates that one worker makes alone, on its own shard, before the others begin; default 0. The
                          `timeout` of `train` must allow for this wait

    While a worker computes its gradient, others change the weights: the gradient's staleness is the number of updates
    between its fetch and its push. P equal workers take turns: from the second turn on it is P - 1.
    Limits: one worker with fetch_every = push_every = 1 is Serial; staleness=0 with plain SGD is Synchronous on a
    minibatch P times as large, at P times the rate, if all workers' losses have the same weight.

    Notes
        batch_size is per gradient. A gradient counts as zero where a trained parameter has none.
        A worker is a replica: the model on one rank or several, as the strategy's `plan` says. A rank pushes and
        fetches what it holds; staleness, clocks and samples are per worker. A subclass that splits the model defines
        `plan`, `build` and `forward_and_backward`.
        Frozen parameters are neither pushed nor fetched. Groups of parameters keep their options. Layer-wise optimizers
        (LARS, LAMB) need servers that hold whole parameters: one server is always enough.
        `report.staleness` counts the gradients by their staleness, on server 0.
        `report.recorded["lead"]` has for each server the lead, in pushes, of every released worker over the slowest.

    >>> from minidl import data, nn, optim, parallel
    >>> job = parallel.Job(
    ...     model=lambda: nn.models.MLP(2, 16, 3),
    ...     data=lambda: data.spirals(n=100),
    ...     optimizer=lambda parameters: optim.SGD(parameters, lr=0.1),
    ...     batch_size=5,
    ...     epochs=2,
    ... )
    >>> report = parallel.train(job, parallel.ParameterServer(), nodes=4, on="simulation")
    >>> sorted(report.staleness.items())
    [(0, 1), (1, 1), (2, 1), (3, 29)]

    References
        Dean et al., Large scale distributed deep networks (NIPS 2012), section 4.1 and algorithms 7.1 to 7.3; Ho et al.
        (NIPS 2013) for the bound, see `bounded_staleness.py`; Zhang et al., Staleness-aware async-SGD for distributed
        deep learning (arXiv:1511.05950).
    """

    servers: int = 1
    fetch_every: int = 1
    push_every: int = 1
    staleness: int | None = None
    staleness_aware: bool = False
    locked: bool = False
    warm_start: int = 0
    is_asynchronous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        lowest = {"servers": 1, "fetch_every": 1, "push_every": 1, "warm_start": 0}
        for name, at_least in (lowest if self.staleness is None else lowest | {"staleness": 0}).items():
            object.__setattr__(self, name, whole_number(f"ParameterServer: {name}", getattr(self, name), at_least))
        for name in ("staleness_aware", "locked"):
            object.__setattr__(self, name, flag(f"ParameterServer: {name}", getattr(self, name)))
        if self.staleness is not None and self.fetch_every != self.push_every:
            raise ValueError(
                "ParameterServer: with a bound on the staleness a worker fetches whenever it pushes, got "
                f"fetch_every={self.fetch_every} and push_every={self.push_every}"
            )
        if self.locked and (self.staleness is not None or self.warm_start):
            raise ValueError(
                "ParameterServer: locked=True does not go with staleness or warm_start: a worker that has to wait "
                "would keep the lock from those it waits for"
            )

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        if self.locked:  # a rank that dies after only one server got its request would hold the lock for ever
            check_not_split("ParameterServer(locked=True)", self.plan(job, nodes))
        layout = self._layout(model := job.build_model())
        if layout.exchanged < self.servers:
            raise ValueError(
                f"{layout.exchanged} weights cannot be shared by {self.servers} servers: use at most {layout.exchanged}"
            )
        optimizer = job.build_optimizer(model)
        cut = [name for name, parameter in model.named_parameters() if parameter.requires_grad and layout.is_cut(name)]
        if isinstance(optimizer, LAYERWISE) and cut:
            raise ValueError(
                f"{type(optimizer).__name__} needs the norm of whole parameters, but {cut[0]} lies on several servers: "
                "use one server, or an optimizer that treats every weight by itself, such as SGD or Adagrad"
            )
        if self.fetch_every > 1 and len(rates := {group["lr"] for group in optimizer.param_groups}) > 1:
            raise ValueError(
                f"the optimizer's groups have {len(rates)} learning rates, but with fetch_every={self.fetch_every} a "
                "worker steps its copy of all weights by one: use fetch_every=1, or one rate"
            )

    def run(self, session: Session) -> None:
        worker = Worker(session, self._layout(session.model))
        lr = self._exchange(session, worker, push=None, samples=0, fetch=True)
        unpushed, samples = np.zeros_like(session.weights()), 0
        for step, batch in enumerate(session.stream(), start=1):
            session.zero_grad()
            self.forward_and_backward(session, batch)
            session.clip_gradient()
            gradient = session.gradient()
            unpushed += gradient
            samples += len(batch.x)
            is_push, is_fetch = step % self.push_every == 0, step % self.fetch_every == 0
            if not is_fetch:
                session.set_weights(session.weights() - lr * gradient)
            if is_push or is_fetch:
                lr = self._exchange(session, worker, unpushed if is_push else None, samples, is_fetch)
            if is_push:
                unpushed[:], samples = 0, 0
        worker.leave()

    def serve(self, session: Session) -> None:
        layout = self._layout(session.model)
        start, stop = layout.borders[session.server : session.server + 2]
        session.hold(start, stop)
        workers = range(session.replicas)
        clocks, version, total = Clocks(workers, self.staleness), dict.fromkeys(workers, 0), 0
        late = set(workers)  # workers that have not asked for the first weights yet
        for worker, request in (loop := Requests(session, layout)):
            late.discard(worker)
            if request is None:
                clocks.remove(worker)
            elif request[1] is not None and not session.finished:
                samples, gradient, _ = request
                if session.steps >= self.warm_start:
                    clocks.tick(worker)
                total += samples
                self._update(session, gradient, session.steps - version[worker], total)
                session.processed(total, session.weights, start)
            for other in [other for other in loop.waiting if self._may_go_on(session, clocks, late, other)]:
                *_, is_fetch = loop.waiting[other]
                if not session.finished:
                    session.record("lead", clocks.lead(other))
                if is_fetch:
                    version[other] = session.steps
                lr = session.optimizer.param_groups[0]["lr"]
                loop.answer(other, (session.finished, lr, session.weights() if is_fetch else None))
        if len(loop.failed) == session.replicas:
            raise loop.failed[0]
        session.processed(session.total_samples, session.weights, start)  # if a worker died between two servers

    def _exchange(self, session: Session, worker: Worker, push: Array | None, samples: int, fetch: bool) -> float:
        """Push a gradient, the sum over `samples` samples, or fetch the weights, or both; returns the learning rate."""
        answers, weights = worker.ask((samples, push, fetch), is_locked=self.locked)
        finished, rates, _ = zip(*answers, strict=True)
        session.finished = any(finished)
        if weights is not None:
            session.set_weights(weights)
        return float(rates[0])

    def _layout(self, model: Module) -> Layout:
        return Layout(model, self.servers, only_trained=True)

    def _update(self, session: Session, gradient: Array, staleness: int, processed: int) -> None:
        if session.server == 0:
            session.record("staleness", staleness)
        session.set_gradient(gradient)
        session.update(1 / max(1, staleness) if self.staleness_aware else 1.0, samples=processed)

    def _may_go_on(self, session: Session, clocks: Clocks, late: set[int], worker: int) -> bool:
        if session.finished:
            return True
        if session.steps < self.warm_start:
            return worker == min(clocks.made)
        if self.staleness == 0 and late:  # late workers would get weights that others have updated
            return False
        return clocks.may_begin(worker)
