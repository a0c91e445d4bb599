"""Parameter servers: workers fetch the weights and push gradients, each at its own pace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from minidl.data.loader import Batch
from minidl.kernels import Array
from minidl.nn import Module
from minidl.optim.layer_wise import LayerWise
from minidl.parallel.job import Job
from minidl.parallel.run.session import Session
from minidl.parallel.servers.keys import Layout
from minidl.parallel.servers.replicas import OfReplicas
from minidl.parallel.servers.requests import Requests
from minidl.parallel.servers.worker import Worker


@dataclass(frozen=True)
class ParameterServer(OfReplicas):
    """Asynchronous SGD: every gradient updates the weights as soon as it arrives.

        server, for its slice of the weights:
            for each gradient, in order of arrival:
                update the weights with it
                send its worker the weights, as soon as the bound on the staleness allows
        worker:
            fetch the weights
            for each minibatch:
                gradient of the mean loss; push it; fetch the weights

    Parameters
        servers     number of servers, default 1; each holds a slice of all weights and the job's optimizer for it, so
                    more servers share the traffic
        staleness   bound in pushes: a worker that has pushed c times continues when every worker has pushed
                    c - staleness times; None, the default: no worker waits; 0: all are in step; the first weights are
                    sent when every worker has asked for them
        replica     how several ranks compute a worker's gradients, such as `Hybrid(pp=2)`, which makes each worker a
                    pipeline of two stages; default: a worker is one rank with the whole model

    Variants are subclasses: `Downpour`, `StalenessAwareSGD`, `LockedParameterServer`.
    While a worker computes its gradient, others change the weights: the gradient's staleness is the number of updates
    between its fetch and its push. P equal workers take turns: from the second turn on it is P - 1.
    Limits: one worker is Serial; staleness=0 with plain SGD is Synchronous on a minibatch P times as large, at P times
    the rate, if all workers' losses have the same weight.

    Notes
        batch_size is per gradient. A gradient counts as zero where a trained parameter has none.
        With `replica`, each rank of a worker pushes and fetches what it holds of the model, to and from every server
        that has some of it. The servers apply a push, and answer a fetch, when all ranks of the worker have asked, so
        staleness, clocks and samples are per worker. A weight that several ranks hold is pushed once.
        Equal to a run of as many whole workers, up to rounding and update by update, if the gradients come in the same
        order. They do where messages take no time and a worker needs as long for a minibatch as a whole one, as by
        `Hybrid(pp=2, micro_batches=1)` on nodes of the same speed.
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
        Li et al., Scaling distributed machine learning with the parameter server (OSDI 2014), section 3. For the bound:
        Ho et al., More effective distributed ML via a stale synchronous parallel parameter server (NIPS 2013). For
        `replica`: Dean et al., Large scale distributed deep networks (NIPS 2012), sections 3 and 4.1.
    """

    servers: int = 1
    staleness: int | None = None
    is_asynchronous: ClassVar[bool] = True
    is_locked: ClassVar[bool] = False  # whether only one worker at a time may ask the servers

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_whole(servers=1)
        if self.staleness is not None:
            self.check_whole(staleness=0)

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        layout = self._layout(model := job.build_model())
        if layout.exchanged < self.servers:
            raise ValueError(
                f"{layout.exchanged} weights cannot be shared by {self.servers} servers: use at most {layout.exchanged}"
            )
        optimizer = job.build_optimizer(model)
        cut = [name for name, parameter in model.named_parameters() if parameter.requires_grad and layout.is_cut(name)]
        if isinstance(optimizer, LayerWise) and cut:
            raise ValueError(
                f"{type(optimizer).__name__} needs the norm of whole parameters, but {cut[0]} lies on several servers: "
                "use one server, or an optimizer that treats every weight by itself, such as SGD or Adagrad"
            )

    def run(self, session: Session) -> None:
        worker = Worker(session, self._layout(session.model))
        self._exchange(session, worker)
        backpropagate = self.backpropagation(session)
        for batch in session.batches_until_finished():
            self._compute_gradient(session, backpropagate, batch)
            self._exchange(session, worker, session.gradient(), len(batch.x))
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
                self.count_push(session, clocks, worker)
                total += samples
                staleness = session.steps - version[worker]
                if session.server == 0:
                    session.record("staleness", staleness)
                session.set_gradient(gradient)
                session.update(self.rate_factor(staleness), samples=total)
                session.processed(total, session.weights, start)
            released = [one for one in loop.waiting if session.finished or self.may_go_on(session, clocks, late, one)]
            for other in released:
                *_, is_fetch = loop.waiting[other]
                if not session.finished:
                    session.record("lead", clocks.lead(other))
                if is_fetch:
                    version[other] = session.steps
                lr = session.optimizer.param_groups[0]["lr"]
                loop.answer(other, (session.finished, lr, session.weights() if is_fetch else None))
        if len(loop.failed) == session.replicas:
            raise loop.failed[0]
        session.processed(session.samples_of_run, session.weights, start)  # if a worker died between two servers

    def rate_factor(self, staleness: int) -> float:
        """Multiplies the learning rate of an update by a gradient of that staleness."""
        return 1.0

    def count_push(self, session: Session, clocks: Clocks, worker: int) -> None:
        """Called on a server before each update by a push of that worker."""
        clocks.tick(worker)

    def may_go_on(self, session: Session, clocks: Clocks, late: set[int], worker: int) -> bool:
        """Whether a server may answer the waiting worker; `late`: workers that have not asked for the first weights."""
        if self.staleness == 0 and late:  # late workers would get weights that others have updated
            return False
        return clocks.may_begin(worker)

    def _layout(self, model: Module) -> Layout:
        return Layout(model, self.servers, only_trained=True)

    def _compute_gradient(self, session: Session, backpropagate: Callable[[Batch], None], batch: Batch) -> None:
        session.zero_grad()
        backpropagate(batch)
        session.clip_gradient()

    def _exchange(
        self, session: Session, worker: Worker, push: Array | None = None, samples: int = 0, fetch: bool = True
    ) -> float:
        """Push a gradient, the sum over `samples` samples, or fetch the weights, or both; returns the learning rate."""
        answers, weights = worker.ask((samples, push, fetch), is_locked=self.is_locked)
        finished, rates, _ = zip(*answers, strict=True)
        session.finished = any(finished)
        if weights is not None:
            session.set_weights(weights)
        return float(rates[0])


@dataclass(frozen=True)
class Downpour(ParameterServer):
    """A parameter server whose workers push and fetch only after several minibatches.

        worker:
            fetch the weights
            for each minibatch:
                gradient of the mean loss; add it to the sum to push
                after every push_every minibatches: push the sum, and begin a new one
                after every fetch_every minibatches: fetch the weights; else step this copy of them: w -= lr gradient

    Parameters
        servers, staleness, replica   as for ParameterServer; a bound needs fetch_every = push_every
        fetch_every   minibatches between fetches, default 1; a larger value: fewer messages, staler gradients
        push_every    minibatches between pushes, default 1; a larger value: fewer messages, larger updates
        warm_start    updates that one worker makes alone, on its own shard, before the others begin; default 0. The
                      `timeout` of `train` must allow for this wait

    Limits: with fetch_every = push_every = 1 and warm_start = 0, ParameterServer.

    Notes
        The run ends when `epochs` passes have been pushed, so every worker makes at least push_every minibatches, even
        if fewer would be enough. What it has not pushed at the end is lost.

    References
        Dean et al., Large scale distributed deep networks (NIPS 2012), section 4.1 and algorithms 7.1 to 7.3.
    """

    fetch_every: int = 1
    push_every: int = 1
    warm_start: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_whole(fetch_every=1, push_every=1, warm_start=0)
        if self.staleness is not None and self.fetch_every != self.push_every:
            raise ValueError(
                "Downpour: with a bound on the staleness a worker fetches whenever it pushes, got "
                f"fetch_every={self.fetch_every} and push_every={self.push_every}"
            )

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        rates = {group["lr"] for group in job.build_optimizer(job.build_model()).param_groups}
        if self.fetch_every > 1 and len(rates) > 1:
            raise ValueError(
                f"the optimizer's groups have {len(rates)} learning rates, but with fetch_every={self.fetch_every} a "
                "worker steps its copy of all weights by one: use fetch_every=1, or one rate"
            )

    def run(self, session: Session) -> None:
        worker = Worker(session, self._layout(session.model))
        lr = self._exchange(session, worker)
        unpushed, samples, backpropagate = np.zeros_like(session.weights()), 0, self.backpropagation(session)
        for step, batch in enumerate(session.batches_until_finished(), start=1):
            self._compute_gradient(session, backpropagate, batch)
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

    def count_push(self, session: Session, clocks: Clocks, worker: int) -> None:
        if session.steps >= self.warm_start:  # the updates before put their worker ahead of nobody
            super().count_push(session, clocks, worker)

    def may_go_on(self, session: Session, clocks: Clocks, late: set[int], worker: int) -> bool:
        if session.steps < self.warm_start:
            return worker == min(clocks.made)
        return super().may_go_on(session, clocks, late, worker)


@dataclass(frozen=True)
class StalenessAwareSGD(ParameterServer):
    """A parameter server that divides the learning rate of each update by the staleness of its gradient, if above 0.

    Its parameters are those of ParameterServer.

    References
        Zhang, Gupta, Lian and Liu, Staleness-aware async-SGD for distributed deep learning (arXiv:1511.05950).
    """

    def rate_factor(self, staleness: int) -> float:
        return 1 / max(1, staleness)


@dataclass(frozen=True)
class LockedParameterServer(ParameterServer):
    """A parameter server that serves one worker at a time, on all servers together.

    So all slices that a worker fetches are of the same age. There is no bound on the staleness: a worker that has to
    wait would keep the lock from those it waits for.

    Parameters
        servers   as for ParameterServer
    """

    is_locked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.staleness is not None:
            raise ValueError(
                "LockedParameterServer: leave out staleness: a worker that has to wait would keep the lock from those "
                "it waits for"
            )

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        # A rank that dies after only one server got its request would hold the lock for ever
        self.check_one_rank("LockedParameterServer", job, nodes)


class Clocks:
    """The number of updates that each worker has made, and the rule of bounded staleness.

        a worker that has made c updates may begin the next one if  c - min over all workers <= bound

    Parameters
        bound   0      bulk synchronous: all workers in step
                s      stale synchronous parallel: a fast worker may be s updates ahead of the slowest
                None   asynchronous: no worker waits

    A worker that begins update c sees all updates before number c - bound of every worker. The numbers of updates that
    two workers have made differ by at most bound + 1.

    >>> clocks = Clocks([0, 1], bound=1)
    >>> clocks.tick(0)
    >>> clocks.may_begin(0)
    True
    >>> clocks.tick(0)
    >>> clocks.may_begin(0), clocks.may_begin(1), clocks.lead(0)
    (False, True, 2)
    """

    def __init__(self, workers: Iterable[int], bound: int | None) -> None:
        self.bound = bound
        self.made = dict.fromkeys(workers, 0)

    def tick(self, worker: int) -> None:
        """Count an update of the worker."""
        self.made[worker] += 1

    def lead(self, worker: int) -> int:
        """Number of updates by which the worker is ahead of the slowest."""
        return self.made[worker] - min(self.made.values())

    def may_begin(self, worker: int) -> bool:
        """Whether the worker may begin its next update."""
        return self.bound is None or self.lead(worker) <= self.bound

    def remove(self, worker: int) -> None:
        """Remove the worker, so that no other waits for it."""
        del self.made[worker]
