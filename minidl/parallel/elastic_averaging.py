"""Elastic averaging: every worker trains a model of its own, tied to a common centre as if by a spring."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from math import ceil

import numpy as np

from minidl.cluster import ANY
from minidl.kernels import Array
from minidl.parallel.job import Job
from minidl.parallel.session import Session
from minidl.parallel.strategy import Strategy

VARIANTS = ("synchronous", "round_robin", "asynchronous")


@dataclass(frozen=True)
class ElasticAveraging(Strategy):
    """EASGD: workers train by themselves; now and then each is drawn to the centre, and the centre to it.

        x = centre = the same weights everywhere
        for t = 0, 1, ... on every worker:
            pull = alpha (x - centre) if period divides t, else 0;   centre = centre + pull
            x = x - lr gradient(x) - pull

    alpha: the moving rate, by default 0.9/p with p workers. period: local steps from one pull to the next, tau.
    variant: in which order the centre meets the workers:

        "synchronous"   all at once: each node has a copy of the centre, and an all-reduce adds up the pulls
        "round_robin"   worker 0, 1, ..., p - 1, 0, 1, ...; the centre is on a server (the "original EASGD")
        "asynchronous"  whoever comes; the centre is on a server

    momentum: of EAMSGD, where the gradient is taken at x + momentum v, and v, the last step without its pull, is added
    in the next one; 0 for none. (The optimizer may have its own instead; then the pulls do not enter its memory.)
    algorithm: of the all-reduce, for "synchronous".

    What a pull takes from the worker it gives to the centre, so that without gradients the sum of the centre and all
    workers stays the same. The model that is judged is the centre. As alpha goes to 0 each worker trains alone, one
    worker as Serial does. Here alpha is a setting by itself; where the pull is written lr rho (x - centre), alpha =
    lr rho, and with lr = 0 nothing moves.

    `batch_size` counts the samples of all nodes together for "synchronous", of one gradient for the others. The server
    ends the run when the workers have told it of `epochs` passes, which each does when it comes. A worker's schedule
    counts as many samples of each other worker as its own. Of batch norm's running statistics worker 0's hold.

    In round robin workers are numbered from 0, as t mod p is (from 1, the last would never have its turn); the centre
    stays in one place, the server; and although it moves after the worker, it moves by the weights that the worker had
    before: by those of after, the total would not be kept, and other alphas would be stable.

    Source: Zhang, Choromanska and LeCun (arXiv:1412.6651), the synchronous equations, algorithm 1 (asynchronous) and
    algorithm 2 (EAMSGD); You, Buluc and Demmel, Scaling deep learning on GPU and Knights Landing clusters (SC'17),
    original and synchronous EASGD.
    """

    alpha: float | None = None
    period: int = 1
    variant: str = "asynchronous"
    momentum: float = 0.0
    algorithm: str = "auto"

    def __post_init__(self) -> None:
        if self.alpha is not None and not 0 < self.alpha <= 1:
            raise ValueError(f"ElasticAveraging: alpha must be above 0 and at most 1, got {self.alpha}")
        if not isinstance(self.period, int) or self.period < 1:
            raise ValueError(f"ElasticAveraging: period must be a whole number of at least 1, got {self.period!r}")
        if self.variant not in VARIANTS:
            raise ValueError(
                f"ElasticAveraging: unknown variant {self.variant!r}: choose one of {', '.join(map(repr, VARIANTS))}"
            )
        if not 0 <= self.momentum < 1:
            raise ValueError(f"ElasticAveraging: momentum must be at least 0 and below 1, got {self.momentum}")
        self.check_algorithm()
        has_server = self.variant != "synchronous"
        object.__setattr__(self, "servers", int(has_server))  # both follow from the variant
        object.__setattr__(self, "is_asynchronous", has_server)

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        samples = job.smallest_batch * (nodes if self.servers else 1)
        steps = ceil(job.epochs * len(job.build_data().train) / samples)  # of a worker, at most
        if self.period >= steps > 1:
            raise ValueError(
                f"ElasticAveraging: with period={self.period} the workers never meet the centre on the way, since each "
                f"makes about {steps} steps: choose a shorter period"
            )
        own = job.optimizer(job.build_model().parameters()).param_groups[0].get("momentum", 0.0)
        if self.momentum and own:
            raise ValueError(
                f"ElasticAveraging has momentum={self.momentum}, and the optimizer has momentum={own}: "
                "set one of them to 0"
            )

    def run(self, session: Session) -> None:
        centre, velocity = session.weights(), np.zeros_like(session.weights())
        untold = 0  # samples since the last pull
        batches = session.stream() if self.servers else session.parts(centre.copy)
        seen = 0  # samples of this worker
        for batch in batches:
            x, pull = session.weights(), None
            if session.steps % self.period == 0:
                if self.servers:
                    lr = session.optimizer.param_groups[0]["lr"]
                    session.comm.send((x, untold, lr), session.nodes)
                    pull, session.finished = session.comm.recv(session.nodes)
                else:
                    pull = self._pull(session, x, centre)
                    centre += session.comm.all_reduce(pull.copy(), algorithm=self.algorithm)
                untold = 0
            if self.momentum:
                session.set_weights(x + self.momentum * velocity)
            session.model.zero_grad()
            if len(batch.x):  # in the ragged last minibatch a part may be empty
                session.local_loss(batch).backward()
            untold, seen = untold + len(batch.x), seen + len(batch.x)
            session.update(samples=session.nodes * seen if self.servers else None)
            velocity = session.weights() - x
            if pull is not None:
                session.set_weights(session.weights() - pull)

    def serve(self, session: Session) -> None:
        centre, samples, ended = session.weights(), 0, 0
        for turn in itertools.count():
            x, more, lr = session.comm.recv(turn % session.nodes if self.variant == "round_robin" else ANY)
            worker = session.comm.last_source
            session.optimizer.param_groups[0]["lr"] = lr  # for the report
            pull = self._pull(session, x, centre)
            centre += pull
            session.steps += 1
            samples += more
            session.processed(samples, centre.copy)
            session.comm.send((pull, session.finished), worker)
            ended += session.finished
            if ended == session.nodes:
                return

    def _pull(self, session: Session, x: Array, centre: Array) -> Array:
        """The way that a worker at x goes towards the centre, and the centre towards the worker."""
        alpha = 0.9 / session.nodes if self.alpha is None else self.alpha
        pull: Array = (alpha * (x - centre)).astype(x.dtype, copy=False)
        session.record("distance", float(np.linalg.norm(x - centre)))
        return pull
