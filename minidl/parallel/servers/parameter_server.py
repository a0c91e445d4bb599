"""Parameter servers: workers fetch the weights and push gradients, each at its own pace."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from minidl import optim
from minidl.cluster.collectives.partition import split
from minidl.kernels import Array
from minidl.parallel.job import Job
from minidl.parallel.run.session import Session
from minidl.parallel.servers.bounded_staleness import Clocks
from minidl.parallel.servers.server_loop import Requests, ask, leave, locked
from minidl.parallel.strategy import Strategy

LAYERWISE = (optim.LARS, optim.LAMB)  # they need the norm of a whole parameter


@dataclass(frozen=True)
class ParameterServer(Strategy):
    """Asynchronous SGD: every gradient updates the weights as soon as it arrives.

        server, of a piece of the weights:
            for each gradient that comes, from whichever worker:
                update the weights by it
                send the worker the weights, as soon as it may go on
        worker:
            fetch the weights
            for each minibatch:
                gradient of the mean loss; add it to what is to be pushed
                after every push_every minibatches: push that, and begin a new sum
                after every fetch_every minibatches: fetch the weights; else step this copy of them: w -= lr gradient

    While a worker computes its gradient, others change the weights: the gradient's staleness is the number of updates
    between its fetch and its push, and `report.staleness` counts them (as server 0 does). P equal workers take turns:
    from the second turn on it is P - 1. For each server, `report.recorded["lead"]` has the lead, in pushes, of every
    released worker over the slowest one.

    servers: each holds a piece of the vector of all weights, and the job's optimizer for it. fetch_every, push_every:
    in minibatches. staleness: a bound: a worker that has pushed c times goes on when every worker has pushed c -
    staleness times; needs fetch_every = push_every. None: nobody waits. staleness_aware: the learning rate is divided
    by the gradient's staleness. locked: one worker at a time is served, by all servers; without it a worker may
    receive pieces that are of different age. warm_start: number of updates that one worker makes alone before the
    others begin, on its own shard (train's `timeout` must let them wait). batch_size: of one gradient.

    With one worker, and fetch_every = push_every = 1, equal to Serial. With staleness=0 and plain SGD, equal to
    Synchronous on a minibatch P times as large at P times the rate. A gradient counts as zero where a parameter has
    none. The optimizer must treat all weights alike: no parameter groups, no layer-wise rates.

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

    Errors: ValueError for a setting that makes no sense; from `train` for what does not fit the job.

    Source: Dean et al., Large scale distributed deep networks (NIPS 2012), section 4.1 and algorithms 7.1 to 7.3;
    staleness: Ho et al. (NIPS 2013), see `bounded_staleness.py`; staleness_aware: Zhang et al., Staleness-aware
    async-SGD for distributed deep learning (arXiv:1511.05950).
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
        for name, lowest in (("servers", 1), ("fetch_every", 1), ("push_every", 1), ("warm_start", 0)):
            _check_whole(name, getattr(self, name), lowest)
        if self.staleness is not None:
            _check_whole("staleness", self.staleness, 0)
            if self.fetch_every != self.push_every:
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
        parameters = list(job.build_model().parameters())
        if (size := sum(parameter.size for parameter in parameters)) < self.servers:
            raise ValueError(f"{size} weights cannot be shared by {self.servers} servers: use at most {size}")
        if not all(parameter.requires_grad for parameter in parameters):
            raise ValueError("ParameterServer updates all weights: it cannot keep some frozen (requires_grad=False)")
        optimizer = job.optimizer(parameters)
        if isinstance(optimizer, LAYERWISE):
            raise ValueError(
                f"{type(optimizer).__name__} needs the norm of whole parameters, but a server holds a piece of the "
                "vector of all weights: choose an optimizer that treats every weight by itself, such as SGD or Adagrad"
            )
        if len(optimizer.param_groups) > 1:
            raise ValueError(
                f"the optimizer has {len(optimizer.param_groups)} parameter groups, but a server holds a piece of the "
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
        leave(session.comm, self._servers(session))

    def serve(self, session: Session) -> None:
        pieces = split(session.weights(), self.servers)
        start = sum(len(piece) for piece in pieces[: session.server])
        session.hold(start, start + len(pieces[session.server]))
        workers = range(session.nodes)
        clocks, version = Clocks(workers, self.staleness), dict.fromkeys(workers, 0)
        total, waiting = 0, {}  # waiting: the workers that have no answer yet, and whether they want the weights
        for worker, request in (requests := Requests(session.comm, workers)):
            if request is None:
                clocks.remove(worker)
            else:
                samples, gradient, waiting[worker] = request
                if gradient is not None and not session.finished:
                    if session.steps >= self.warm_start:
                        clocks.tick(worker)
                    total += samples
                    self._update(session, gradient, session.steps - version[worker], total)
                    session.processed(total, session.weights, start)
            for other in [other for other in waiting if self._may_go_on(session, clocks, other)]:
                is_fetch = waiting.pop(other)
                if not session.finished:
                    session.record("lead", clocks.lead(other))
                if is_fetch:
                    version[other] = session.steps
                lr = session.optimizer.param_groups[0]["lr"]
                requests.answer(other, (session.finished, lr, session.weights() if is_fetch else None))
        if len(requests.failed) == session.nodes:
            raise requests.failed[0]
        session.processed(session.total_samples, session.weights, start)  # where a worker died between two servers

    def _exchange(self, session: Session, push: Array | None, samples: int, fetch: bool) -> float:
        """Push a gradient, the sum over so many samples, or fetch the weights, or both; returns the learning rate."""
        servers = self._servers(session)
        pieces = [None] * self.servers if push is None else split(push, self.servers)
        with locked(session.comm, servers[0]) if self.locked else contextlib.nullcontext():
            answers = ask(session.comm, servers, [(samples, piece, fetch) for piece in pieces])
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

    @staticmethod
    def _servers(session: Session) -> range:
        return range(session.nodes, session.comm.size)


def _check_whole(name: str, value: int, lowest: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
        raise ValueError(f"ParameterServer: {name} must be a whole number of at least {lowest}, got {value!r}")
