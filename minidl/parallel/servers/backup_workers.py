"""Backup workers: more workers than an update needs, so that no update waits for the slowest."""

from __future__ import annotations

from dataclasses import dataclass

from minidl.arguments import flag
from minidl.parallel.job import Job
from minidl.parallel.run.session import Session
from minidl.parallel.servers.quorum import FETCH, Quorum
from minidl.parallel.servers.server_loop import leave
from minidl.tensor import Tensor


@dataclass(frozen=True)
class BackupWorkers(Quorum):
    """Synchronous SGD with N + b workers: each update takes the first N gradients and drops the other b.

        coordinator:
            as soon as N gradients of the current weights have arrived: update with their mean
                send these workers the new weights; with abandon, send them to all workers
            for each gradient of outdated weights: drop it
                send its worker the current weights, unless they are on their way to it
        worker:
            for each minibatch: gradient of the mean loss; send it; receive weights
                with abandon: stop as soon as new weights arrive, and start on the next minibatch with these

    Parameters
        backups    b, the number of gradients that an update does not wait for, default 1; N is the number of nodes less
                   b; more backups: shorter updates, of fewer gradients
        abandon    what a worker does when its minibatch is no longer needed
                   False   default: it finishes its gradient, which is dropped, and then fetches the current weights
                   True    it starts on the next one when the new weights arrive: all begin every update together
        replica    as for ParameterServer; with abandon, on one rank

    All updates use gradients of the current weights: unlike asynchronous SGD, there is no staleness.
    Limits: b = 0 is Synchronous on a minibatch N times as large, up to rounding and with any optimizer (but a parameter
    without a gradient counts as having one of zero), if the training set divides into such minibatches.
    Time of an update, for independent exponential compute times of mean 1: H_(N+b) - H_b with abandon, where
    H_n = 1 + 1/2 + ... + 1/n: 1.829 for 8 of 9. Without abandon, where outdated work is finished, 2.03 (measured).

    Notes
        batch_size is per gradient. An epoch, and the schedule, counts the samples of the gradients that are used.
        A minibatch that is dropped or abandoned is lost for this pass over the worker's shard; the next pass has its
        samples again.
        In a simulation, a worker abandons a minibatch at the moment when the new weights arrive. On processes and under
        MPI it does so at its next check: in `comm.compute`, between forward and backward, or after each parameter's
        gradient in backward.
        `report.recorded` has the ages, in updates, of the gradients that were "dropped" and "abandoned".
        Batch-norm running statistics include the forward passes of gradients that are not used.

    References
        Chen, Monga, Bengio and Jozefowicz, Revisiting distributed synchronous SGD (arXiv:1604.00981), section 3,
        algorithms 3 and 4.
    """

    backups: int = 1
    abandon: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_whole(backups=0)
        object.__setattr__(self, "abandon", flag("BackupWorkers: abandon", self.abandon))

    def needed(self, nodes: int) -> int:
        return nodes - self.backups

    def check(self, job: Job, nodes: int) -> None:
        super().check(job, nodes)
        if self.abandon:
            self.check_one_rank("BackupWorkers(abandon=True)", job, nodes)

    def run(self, session: Session) -> None:
        if self.abandon:
            self._run_abandoning(session)
        else:
            super().run(session)

    def _run_abandoning(self, session: Session) -> None:
        """A worker's loop. It receives weights once per request, as the answer or in advance."""
        comm, coordinator = session.comm, session.nodes

        def look(parameter: Tensor) -> None:
            block.look()

        for parameter in session.parameters:
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(look)
        comm.send(FETCH, coordinator)
        version, weights, session.finished = comm.recv(coordinator)
        session.set_weights(weights)
        backpropagate = self.backpropagation(session)
        for batch in session.batches_until_finished():
            new_weights = comm.irecv(coordinator)
            with comm.until(new_weights) as block:
                session.zero_grad()
                backpropagate(batch)
            is_done = not block.interrupted
            sent = comm.isend(
                (version, len(batch.x), batch.counted, session.gradient() if is_done else None), coordinator
            )
            version, weights, session.finished = new_weights.wait()
            session.set_weights(weights)
            sent.wait()
        leave(comm, [coordinator])
