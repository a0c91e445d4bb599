"""Elastic averaging: every worker trains its own model; an elastic force ties each model to a shared centre."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from minidl.arguments import flag, one_of, real_number
from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.kernels import Array
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.job import Job
from minidl.parallel.run.session import Session
from minidl.parallel.servers.keys import Layout
from minidl.parallel.servers.replicas import OfReplicas
from minidl.parallel.servers.requests import Requests
from minidl.parallel.servers.worker import Worker

VARIANTS = ("synchronous", "round_robin", "asynchronous")


@dataclass(frozen=True)
class ElasticAveraging(OfReplicas):
    """EASGD: every worker trains its own model; an elastic force ties each model to a shared centre.

        centre = x_i = initial weights
        for t = 0, 1, ... on worker i:
            pull   = alpha (x_i - centre)  if t is a multiple of period else 0
            centre = centre + pull
            x_i    = x_i - lr gradient(x_i) - pull

    Parameters
        alpha      strength of the pull, above 0 and at most 1; default 0.9 / p for p workers
        period     local steps between two pulls (tau in the paper); default 1
        variant    "synchronous"    all workers at the same step; every rank keeps the centre, pulls are all-reduced
                   "round_robin"    workers 0, 1, ..., p - 1 in turn; the centre is on a server (original EASGD)
                   "asynchronous"   default: workers in order of arrival; the centre is on a server
        momentum   EAMSGD: velocity v, the last step without its pull; the gradient is taken at x_i + momentum v, and
                   momentum v is added to the step; default 0: none. Instead, the optimizer may have momentum
        algorithm  all-reduce of the synchronous variant, as in `comm.all_reduce`
        overlap    True: the all-reduce of the synchronous variant overlaps the gradient (Sync EASGD 3); default False
        replica    as for ParameterServer; with variant="synchronous", on one rank

    The centre is the model that is evaluated.
    Conserved: a pull moves weight from worker to centre, so centre + sum(x_i) changes by gradients only.
    Stability: with period=1 on a quadratic of curvature h, training diverges for alpha above a bound that falls as the
    rate grows: (4 - 2 lr h) / (2 p + 2 - p lr h) with variant="synchronous", which is at most 2 / (p + 1), and
    (4 - 2 lr h) / (4 - lr h) with variant="round_robin", for any p.
    Limits: alpha -> 0, independent workers, each as Serial on its samples; the centre keeps the initial weights.

    Notes
        Where the paper writes the pull as lr rho (x_i - centre), alpha = lr rho, and with lr = 0 nothing moves.
        batch_size is global for "synchronous" and per gradient otherwise.
        The server, where there is one, ends the run when the workers have reported `epochs` passes; each worker learns
        of it at its next pull. With `on_failure="continue"` the surviving workers finish the run.
        Each worker's schedule counts as many samples of each other worker as its own.
        `report.recorded["distance"]` has the distance from worker to centre before each pull.
        Batch-norm running statistics are those of worker 0.
        Workers are numbered from 0, as t mod p is; numbered from 1, the last worker would never have its turn. The
        centre moves by the weights that the worker had before its update: with those after it, the sum above would not
        be conserved, and other values of alpha would be stable (algorithm 1, line 14, corrected).

    References
        Zhang, Choromanska and LeCun (arXiv:1412.6651), the synchronous equations, algorithms 1 and 2; You, Buluc and
        Demmel, Scaling deep learning on GPU and Knights Landing clusters (SC'17), original and synchronous EASGD.
    """

    alpha: float | None = None
    period: int = 1
    variant: str = "asynchronous"
    momentum: float = 0.0
    algorithm: AllReduceAlgorithm = "auto"
    overlap: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha is not None:
            real_number("ElasticAveraging: alpha", self.alpha, above=0, at_most=1)
        self.check_whole(period=1)
        one_of("ElasticAveraging: variant", self.variant, VARIANTS)
        real_number("ElasticAveraging: momentum", self.momentum, at_least=0, below=1)
        self.check_algorithm()
        has_server = self.variant != "synchronous"
        if flag("ElasticAveraging: overlap", self.overlap) and has_server:
            raise ValueError(
                f"ElasticAveraging: overlap=True hides the all-reduce of variant='synchronous'; with variant="
                f"{self.variant!r} a worker waits for the server's answer: leave overlap out"
            )
        object.__setattr__(self, "servers", int(has_server))  # these follow from the variant
        object.__setattr__(self, "is_asynchronous", has_server)
        object.__setattr__(self, "resumes_from", "" if has_server else "mean")

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        plan = self.plan(job, nodes)
        if not self.servers:
            self.check_one_rank("ElasticAveraging(variant='synchronous')", job, nodes)
        samples = job.smallest_batch * (plan.dp if self.servers else 1)
        steps = ceil(job.epochs * len(job.build_data().train) / samples)  # of a worker, at most
        if self.period >= steps > 1:
            raise ValueError(
                f"ElasticAveraging: with period={self.period} the workers never meet the centre on the way, since each "
                f"makes about {steps} steps: choose a shorter period"
            )
        own = job.build_optimizer(job.build_model()).param_groups[0].get("momentum", 0.0)
        if self.momentum and own:
            raise ValueError(
                f"ElasticAveraging has momentum={self.momentum}, and the optimizer has momentum={own}: "
                "set one of them to 0"
            )

    def run(self, session: Session) -> None:
        centre, velocity = session.weights(), np.zeros_like(session.weights())
        worker = Worker(session, Layout(session.model, servers=1), one_at_a_time=True) if self.servers else None
        backpropagate = self.backpropagation(session)
        seen = unreported = 0  # samples of this worker: of the run, since the last pull
        for batch in session.batches_until_finished() if self.servers else session.local_batches(centre.copy):
            x, pull, adding = session.weights(), None, None
            if session.steps % self.period == 0:
                if worker is not None:
                    lr = session.optimizer.param_groups[0]["lr"]
                    [(_, session.finished)], pull = worker.ask((x, unreported, lr))
                else:
                    pull = self._pull(session, x, centre)
                    adding = session.comm.all_reduce(pull.copy(), algorithm=self.algorithm, async_op=True)
                    if not self.overlap:
                        adding.wait()
                unreported = 0
            if self.momentum:
                session.set_weights(x + self.momentum * velocity)
            session.zero_grad()
            if len(batch.x):  # in the ragged last minibatch a share may be empty
                backpropagate(batch)
            unreported, seen = unreported + len(batch.x), seen + len(batch.x)
            session.update(samples=session.replicas * seen if self.servers else None)
            velocity = session.weights() - x
            if pull is not None:
                session.set_weights(session.weights() - pull)
            if adding is not None:
                centre += adding.wait()

    def serve(self, session: Session) -> None:
        centre, samples = session.weights(), 0
        is_round_robin = self.variant == "round_robin"
        layout = Layout(session.model, servers=1)
        loop = Requests(session, layout, in_turn=is_round_robin, one_at_a_time=True)
        for worker, request in loop:
            if request is None:
                continue
            x, more, lr = request
            session.optimizer.param_groups[0]["lr"] = lr  # for the report
            pull = self._pull(session, x, centre)
            centre += pull
            session.steps += 1
            samples += more
            session.processed(samples, centre.copy)
            loop.answer(worker, (pull, session.finished), is_last=session.finished)
        if not session.finished:
            raise next(iter(loop.failed.values()))

    def _pull(self, session: Session, x: Array, centre: Array) -> Array:
        """The elastic force: worker at x moves by minus this, the centre by this."""
        alpha = 0.9 / session.replicas if self.alpha is None else self.alpha
        pull: Array = (alpha * (x - centre)).astype(x.dtype, copy=False)
        session.record("distance", vector.norm(x - centre))
        return pull
