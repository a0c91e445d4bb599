"""Parameter servers: workers fetch the weights and push gradients, each at its own pace."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from minidl import optim
from minidl.arguments import flag, whole_number
from minidl.cluster.collectives.partition import split
from minidl.kernels import Array
from minidl.parallel.job import Job
from minidl.parallel.run.session import Session
from minidl.parallel.servers.bounded_staleness import Clocks
from minidl.parallel.servers.server_loop import ServerLoop, ask, leave, locked
from minidl.parallel.strategy import Strategy

LAYERWISE = (optim.LARS, optim.LAMB)  # they need the norm of a whole parameter


@dataclass(frozen=True)
class ParameterServer(Strategy):
    """Asynchronous SGD: every gradient updates the weights as soon as it arrives.

        server, of a slice of the weights:
            for each gradient, in order of arrival:
                update the weights by it
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
        fetch_every       minibatches from fetch to fetch, default 1; more: fewer messages, and staler gradients
        push_every        minibatches from push to push, default 1; more: fewer messages, and larger updates
        staleness         bound in pushes: a worker that has pushed c times goes on when every worker has pushed
                          c - staleness times; needs fetch_every = push_every; None, the default: no worker waits
        staleness_aware   True: divide the learning rate by the gradient's staleness; default False
        locked            True: serve one worker at a time, on all servers together
                          False: default; a worker may receive slices of different age
        warm_start        updates that one worker makes alone, on its own shard, before the others begin; default 0. The
                          `timeout` of `train` must allow for this wait

    While a worker computes its gradient, others change the weights: the gradient's staleness is the number of updates
    between its fetch and its push. P equal workers take turns: from the second turn on it is P - 1.
    Limits: one worker with fetch_every = push_every = 1 is Serial; staleness=0 with plain SGD is Synchronous on a
    minibatch P times as large, at P times the rate.

    Notes
        batch_size is per gradient. A gradient counts as zero where a parameter has none.
        The optimizer must treat all weights alike: no parameter groups, no layer-wise rates.
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
        parameters = list((model := job.build_model()).parameters())
        if (size := sum(parameter.size for parameter in parameters)) < self.servers:
            raise ValueError(f"{size} weights cannot be shared by {self.servers} servers: use at most {size}")
        if not all(parameter.requires_grad for parameter in parameters):
            raise ValueError("ParameterServer updates all weights: it cannot keep some frozen (requires_grad=False)")
        optimizer = job.build_optimizer(model)
        if isinstance(optimizer, LAYERWISE):
            raise ValueError(
                f"{type(optimizer).__name__} needs the norm of whole parameters, but a server holds a slice of the "
                "vector of all weights: choose an optimizer that treats every weight by itself, such as SGD or Adagrad"
            )
        if len(optimizer.param_groups) > 1:
            raise ValueError(
                f"the optimizer has {len(optimizer.param_groups)} parameter groups, but a server holds a slice of the "
                "vector of all weights: use one group"
            )

    def run(self, session: Session) -> None:
        lr = self._exchange(session, push=None, samples=0, fetch=True)
        unpushed, samples = np.zeros_like(session.weights()), 0
        for step, batch in enumerate(session.stream(), start=1):
            session.model.zero_grad()
            session.local_loss(batch).backward()
            session.clip_gradient()
            gradient = session.gradient()
            unpushed += gradient
            samples += len(batch.x)
            is_push, is_fetch = step % self.push_every == 0, step % self.fetch_every == 0
            if not is_fetch:
                session.set_weights(session.weights() - lr * gradient)
            if is_push or is_fetch:
                lr = self._exchange(session, unpushed if is_push else None, samples, is_fetch)
            if is_push:
                unpushed[:], samples = 0, 0
        leave(session.comm, _servers(session))

    def serve(self, session: Session) -> None:
        slices = split(session.weights(), self.servers)
        start = sum(map(len, slices[: session.server]))
        session.hold(start, start + len(slices[session.server]))
        workers = range(session.nodes)
        clocks, version, total = Clocks(workers, self.staleness), dict.fromkeys(workers, 0), 0
        for worker, request in (loop := ServerLoop(session.comm, workers)):
            if request is None:
                clocks.remove(worker)
            elif request[1] is not None and not session.finished:
                samples, gradient, _ = request
                if session.steps >= self.warm_start:
                    clocks.tick(worker)
                total += samples
                self._update(session, gradient, session.steps - version[worker], total)
                session.processed(total, session.weights, start)
            for other in [other for other in loop.waiting if self._may_go_on(session, clocks, other)]:
                *_, is_fetch = loop.waiting[other]
                if not session.finished:
                    session.record("lead", clocks.lead(other))
                if is_fetch:
                    version[other] = session.steps
                lr = session.optimizer.param_groups[0]["lr"]
                loop.answer(other, (session.finished, lr, session.weights() if is_fetch else None))
        if len(loop.failed) == session.nodes:
            raise loop.failed[0]
        session.processed(session.total_samples, session.weights, start)  # where a worker died between two servers

    def _exchange(self, session: Session, push: Array | None, samples: int, fetch: bool) -> float:
        """Push a gradient, the sum over `samples` samples, or fetch the weights, or both; returns the learning rate."""
        servers = _servers(session)
        slices = [None] * self.servers if push is None else split(push, self.servers)
        with locked(session.comm, servers[0]) if self.locked else contextlib.nullcontext():
            answers = ask(session.comm, servers, [(samples, slice_, fetch) for slice_ in slices])
        finished, rates, weights = zip(*answers, strict=True)
        session.finished = any(finished)
        if fetch:
            session.set_weights(np.concatenate(weights))
        return float(rates[0])

    def _update(self, session: Session, gradient: Array, staleness: int, processed: int) -> None:
        if session.server == 0:
            session.record("staleness", staleness)
        session.set_gradient(gradient)
        session.update(1 / max(1, staleness) if self.staleness_aware else 1.0, samples=processed)

    def _may_go_on(self, session: Session, clocks: Clocks, worker: int) -> bool:
        if session.finished:
            return True
        if session.steps < self.warm_start:
            return worker == min(clocks.made)
        return clocks.may_begin(worker)


def _servers(session: Session) -> range:
    return range(session.nodes, session.comm.size)
