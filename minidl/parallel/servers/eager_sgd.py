"""Eager SGD: an update waits for some of the workers; a gradient that is late counts in the next update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from minidl.arguments import flag, one_of, whole_number
from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.parallel.job import Job
from minidl.parallel.run.session import Session
from minidl.parallel.servers.partial_all_reduce import PartialAllReduce
from minidl.parallel.servers.quorum import Quorum
from minidl.random import Purpose, stream


@dataclass(frozen=True)
class EagerSGD(Quorum):
    """SGD by partial sums: an update waits for some of the P workers, and no gradient is lost.

        for each minibatch, on every worker: gradient of the mean loss; wait for the update that it goes into
        coordinator=True, on a server:
            as soon as a quorum of gradients, of current or outdated weights, has arrived:
                update with 1/P of their sum; send their workers the new weights
        coordinator=False, on every worker, by a partial all-reduce (partial_all_reduce.py):
            as soon as the worker that begins this round is ready:
                all-reduce: the gradient of each worker that is ready, zeros from each that is still computing
            update with 1/P of the sum; a worker that is computing makes the updates when its gradient is done

    Parameters
        quorum       number of gradients an update waits for; a larger quorum makes fewer, slower updates of fresher
                     gradients
                     "majority"   default: half of the workers rounded up; without a coordinator one worker drawn at
                                  random for each update, so (P + 1)/2 gradients on average for memoryless compute times
                     "solo"       one
                     a number     of workers; only with a coordinator
        coordinator  True    default: a server counts gradients and holds the weights
                     False   the workers agree among themselves, as in the paper; there is no server, and a worker
                             communicates while it computes
        algorithm    algorithm of the all-reduces without a coordinator, as in `comm.all_reduce`
        replica      as for ParameterServer; without a coordinator, on one rank

    Conserved: every gradient is used once, except those that are not ready when the run ends.
    Limits: a quorum of all is Synchronous on a minibatch P times as large, as BackupWorkers(0) is; so is
    coordinator=False where all workers take equally long.
    Time of an update by n of P gradients, for exponential compute times of mean m: m (H_P - H_(P-n)), H the harmonic
    numbers. Without a coordinator m/P (solo), and m (majority: the time of the worker that is drawn).

    Notes
        batch_size is per gradient. The schedule counts the samples of every gradient that is used.
        A parameter without a gradient counts as having one of zero, so weight decay and momentum move it too.
        `report.staleness` counts the gradients by their age in updates.
        A worker whose gradient is late waits for the next update and counts toward its quorum. In the paper it begins
        the next minibatch at once, and its gradient is added to that one's.
        Without a coordinator every worker makes every update, in the same order, so all have the same weights, to the
        bit. (In the paper a worker that has missed several uses only the last sum.) It keeps the sums that it misses,
        so memory grows with how far it is behind. A worker that fails ends the run, since the others need it.
        Snapshots and batch-norm running statistics are those of worker 0.

    References
        Li, Ben-Nun, Di Girolamo, Alistarh and Hoefler, Taming unbalanced training workloads in deep learning with
        partial collective operations (PPoPP 2020, arXiv:1908.04207), sections 4 and 5.
    """

    quorum: str | int = "majority"
    coordinator: bool = True
    algorithm: AllReduceAlgorithm = "auto"
    is_late_used: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        is_number = not isinstance(self.quorum, str)
        if is_number:
            hint = "'majority' and 'solo' are possible, too"
            object.__setattr__(self, "quorum", whole_number("EagerSGD: quorum", self.quorum, at_least=1, hint=hint))
        else:
            one_of("EagerSGD: quorum", self.quorum, ("majority", "solo"), hint="or give a number of workers")
        object.__setattr__(self, "coordinator", flag("EagerSGD: coordinator", self.coordinator))
        if is_number and not self.coordinator:
            raise ValueError(
                f"EagerSGD: only a coordinator can count to quorum={self.quorum}: use 'majority' or 'solo' without one"
            )
        self.check_algorithm()
        object.__setattr__(self, "servers", int(self.coordinator))

    def needed(self, nodes: int) -> int:
        if isinstance(self.quorum, int):
            return self.quorum
        return 1 if self.quorum == "solo" else (nodes + 1) // 2

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        if not self.coordinator:
            self.check_one_rank("EagerSGD(coordinator=False)", job, nodes)

    def run(self, session: Session) -> None:
        if self.coordinator:
            super().run(session)
        else:
            self._run_without_coordinator(session)

    def _run_without_coordinator(self, session: Session) -> None:
        seed, nodes = session.job.seed, session.nodes

        def drawn(round_: int) -> int:
            return int(stream(Purpose.QUORUM, seed, round_).integers(nodes))

        comm, initiator = session.comm.split(0), None if self.quorum == "solo" else drawn
        partial_sums = PartialAllReduce(comm, session.samples_of_run, session.weights(), initiator, self.algorithm)
        total, backpropagate = 0, self.backpropagation(session)
        for batch in session.batches_until_finished():
            session.zero_grad()
            backpropagate(batch)
            rounds, is_used = partial_sums.contribute(own := session.gradient(), len(batch.x), batch.counted)
            if is_used:
                session.record("staleness", len(rounds) - 1)
            for gradients, samples, counted, count in rounds:
                total += samples
                scale = count / (nodes * (counted or 1.0))
                self._step(session, (gradients * scale).astype(own.dtype, copy=False), total)
                if session.comm.rank == 0:
                    session.processed(total, session.weights)
            session.finished = total >= session.samples_of_run
