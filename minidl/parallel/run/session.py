"""Session: one rank's side of a training run, from its minibatches to what it brings back.

A strategy is a loop over `session.batches()` or one of its siblings. The session does the rest between two minibatches:
shuffle, losses, evaluation or a snapshot at the end of an epoch, checkpoints, progress. Where a replica of the model is
one rank or several, it asks the mesh of the strategy's plan; what the strategy alone knows, it asks the strategy.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.cluster.diagnosis.errors import ClusterError
from minidl.cluster.mesh import Mesh
from minidl.data import DataLoader
from minidl.data.loader import Batch
from minidl.kernels import Array
from minidl.nn import Module
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.job import Job
from minidl.parallel.plan import ParallelPlan
from minidl.parallel.run.checkpoint import CHECKPOINT_FILE, Checkpoint
from minidl.parallel.run.divergence import check_finite
from minidl.parallel.run.elastic_restart import Leg
from minidl.parallel.run.evaluation import evaluate, has_labels
from minidl.parallel.run.history import HistoryRow, per_second
from minidl.parallel.run.minibatches import common_minibatches, own_minibatches
from minidl.parallel.run.progress import Progress
from minidl.parallel.run.rank_record import RankRecord
from minidl.parallel.run.records import Records
from minidl.tensor import Tensor

INITIAL_WEIGHTS = "initial weights: let the model draw them from minidl.random.generator(), which the job's seed starts"
PROGRESS_SECONDS = 0.1  # at most ten messages a second


class Split(Protocol):
    """What the session asks the strategy; `Strategy` says what each method does."""

    broadcasts_weights: ClassVar[bool]

    @property
    def goes_on_from(self) -> str: ...

    def plan(self, job: Job, nodes: int) -> ParallelPlan: ...

    def build(self, job: Job, mesh: Mesh[Communicator]) -> Module: ...

    def predict(self, session: Any, x: Array) -> Tensor | None: ...

    def state_dict(self, session: Any) -> dict[str, Array] | None: ...


class Session(Records):
    """One rank's learner (model, optimizer, schedule), its minibatches and its records.

    Parameters
        job         what to train
        strategy    how to train it
        comm        this rank's communicator
        nodes       ranks 0 to nodes - 1 train; the others are servers
        folder      where rank 0 writes `checkpoint.npz` after every epoch of `batches()`; None: nowhere
        config      kept in the checkpoints for the caller
        algorithm   all-reduce of losses and accuracies at the end of an epoch
        leg         from which state this launch of the run begins, and where it ends; None: the whole run

    Attributes, in addition to the learner's
        plan      the strategy's plan
        mesh      its ranks as a grid: `mesh["pp"]` is this rank's pipeline, `mesh["dp"]` are the ranks that hold the
                  same of each replica; not on servers
        replica   number of the replica that this rank belongs to, from 0
        replicas  number of replicas, each of which reads its own share of a minibatch
        epoch     epochs done; in `passes` and `stream`, passes over this replica's shard
        step      minibatches of this epoch before the present one
        finished  in a `stream`: all samples have been processed
        history   rows of the epochs done, in `batches`
    """

    mesh: Mesh[Communicator]

    def __init__(
        self,
        job: Job,
        strategy: Split,
        comm: Communicator,
        nodes: int,
        folder: Path | None = None,
        config: dict[str, Any] | None = None,
        algorithm: str = "auto",
        leg: Leg | None = None,
    ) -> None:
        self.strategy, self.plan = strategy, strategy.plan(job, nodes)
        self.replicas = self.plan.dp
        if comm.rank < nodes:
            self.mesh = self.plan.mesh(comm)
            self.replica = self.mesh.coordinates["dp"]
            # Progress comes from the one rank of the first replica that has a loss
            self._reports = comm.rank == self.mesh.rank_at(dp=0, pp=self.plan.output_stage, spatial=0, tp=0)
            super().__init__(job, comm, strategy.build(job, self.mesh), self.mesh)
        else:
            super().__init__(job, comm, job.build_model())
        self.nodes, self.folder, self.config, self.algorithm = nodes, folder, config or {}, algorithm
        self.history: list[HistoryRow] = []
        leg = leg or Leg()
        self._epochs = self.job.epochs if leg.until is None else leg.until
        self._is_elastic = leg.is_elastic and strategy.goes_on_from != "checkpoint"
        self._bytes_before, self._evaluation_bytes = 0, 0  # of earlier launches; those that are not training
        self._at_evaluation = 0.0, 0  # seconds and bytes of training when the last evaluation began
        self._restore(leg)
        if comm.rank < nodes and not strategy.broadcasts_weights:
            self._check_same_weights()
        self._started = comm.now()

    def _check_same_weights(self) -> None:
        """Raise CollectiveMismatch unless the ranks that hold the same weights begin with the same."""
        whole = [parameter for parameter in self.parameters if parameter.shard is None]
        for axis, same in (("dp", self.parameters), ("tp", whole)):
            if getattr(self.plan, axis) > 1:
                self.mesh[axis].check_same(INITIAL_WEIGHTS, vector.digest(same)[:16])

    def _restore(self, leg: Leg) -> None:
        """Take over the state and the records with which this launch begins."""
        if leg.records:
            self._record = copy.deepcopy(leg.records[self.comm.rank])  # the leg may be needed once more
            self._sent_before = self._record.bytes_sent
        self._resumed = checkpoint = leg.checkpoint
        if checkpoint is None:
            return
        checkpoint.restore(self.model, self.optimizer, self.schedule)
        self.epoch, self.history = checkpoint.epoch, list(checkpoint.history)
        within: dict[str, Any] = {**(self.history[-1] if self.history else {}), "step": 0, **checkpoint.within_epoch}
        if "seconds" in within:
            self._seconds_before, self._bytes_before, self.steps = within["seconds"], within["bytes"], within["steps"]
        self.step = self._done_before = within["step"]
        if self.comm.rank == 0:
            self._loss_before = within.get("loss_sum", 0.0), within.get("counted", 0.0)

    # Minibatches

    def batches(self) -> Iterator[Batch]:
        """This rank's share of every minibatch of the run, for nodes that all have the same weights.

        At the end of each epoch the nodes evaluate their model together, report and save.
        """
        self._evaluates_together = True
        if self.epoch == 0:
            before = self.comm.bytes_sent
            self._save()  # so that a run that is stopped in its first epoch can be resumed
            self._evaluation_bytes += self.comm.bytes_sent - before
        while self.epoch < self._epochs:
            loader = self._common_minibatches()
            samples = 0  # of all ranks
            epoch_started = self.clock()
            for batch in self._one_pass(loader):
                yield batch
                samples += batch.total
            self._end_epoch(len(loader), per_second(samples, self.clock() - epoch_started))

    def parts(self, weights: Callable[[], Array] | None = None) -> Iterator[Batch]:
        """This rank's share of every minibatch of the run, for nodes that have weights of their own.

        At the end of each epoch a snapshot is kept of what `weights` returns; by default of this rank's own.
        """
        while self.epoch < self._epochs:
            yield from self._one_pass(self._common_minibatches())
            self._keep_whole(weights)

    def passes(self, seed: int | None = None) -> Iterator[Batch]:
        """This rank's own minibatches of `batch_size` samples of its own shard, `epochs` passes over it.

        The schedule counts the steps of such a pass. Each pass ends with a snapshot of the weights.
        seed: if given, minibatches of the whole training set instead, as Serial reads it with that seed.
        """
        if seed is None:
            self._begin_schedule(len(range(self.replica, len(self.train), self.replicas)))
            if self._resumed is not None:  # the new optimizer and schedule go on from it too
                self._resumed.restore(self.model, self.optimizer, self.schedule)
        while self.epoch < self._epochs:
            yield from self._one_pass(self._own_minibatches(seed), None if seed is None else (seed, 0))
            self._keep_whole()

    def stream(self) -> Iterator[Batch]:
        """This rank's own minibatches of `batch_size` samples of its own shard, pass after pass until `finished`.

        Faster nodes make more of them, and one that begins when the others have finished makes none. The rank that owns
        the authoritative weights calls `processed` and notifies the others.
        """
        is_late = self.finished
        while not is_late:
            for batch in self._one_pass(self._own_minibatches()):
                yield batch
                if self.finished:
                    self._end_pass()
                    return

    def _common_minibatches(self) -> DataLoader:
        return common_minibatches(self.job, self.train, self.replicas, self.replica, self.epoch)

    def _own_minibatches(self, seed: int | None = None) -> DataLoader:
        return own_minibatches(self.job, self.train, self.replicas, self.replica, self.epoch, seed)

    def _one_pass(self, loader: DataLoader, seed_and_replica: tuple[int, int] | None = None) -> Iterator[Batch]:
        """The minibatches of one epoch of the loader, with the random numbers of this replica or of the one given."""
        loader.set_epoch(self.epoch)
        seed, replica = seed_and_replica or (self.job.seed, self.replica)
        self.model.train()
        first = self._begin_pass()
        sharers = 1 if loader.sampler is None else self.replicas  # whose own minibatches the rate below leaves out
        samples, started = 0, self.clock()
        last_report = started
        for self.step, batch in enumerate(loader):
            if self.step < first:
                continue
            self._begin_minibatch()
            self.begin_forward(replica, seed=seed)
            yield batch
            samples += batch.total
            now = self.clock()
            if self._reports and now - last_report > PROGRESS_SECONDS:
                last_report = now
                self._report(len(loader), per_second(samples * sharers, now - started))
        self._end_pass()

    @property
    def server(self) -> int:
        """The number of this server, from 0; below 0 on nodes."""
        return self.comm.rank - self.nodes

    def result(self) -> RankRecord:
        """What the rank brings back at the end."""
        done = self._record
        done.digest, done.bytes_sent = vector.digest(self.parameters), self.bytes_sent
        if self._epochs < self.job.epochs:
            return self.unfinished()
        if self._is_elastic:
            done.state = self._state_within_epoch()  # of every rank: rank 0 may die when it has finished
        elif self._evaluates_together:
            done.state = self.state()
        return done

    def unfinished(self, error: ClusterError | None = None) -> RankRecord:
        """What the rank brings back of a run that is to go on with other nodes: its state after its last update.

        Where the run goes on from a checkpoint, it has no state, but the number of its updates, which are done again.
        error: what ended it here, since another rank has died; None: the next launch has more nodes.
        """
        self.comm.abandon()
        unfinished = self._record
        if self._is_elastic:
            self._undo_unfinished_minibatch()
            unfinished.state = self._state_within_epoch()
        unfinished.bytes_sent, unfinished.steps = self.bytes_sent, self.steps
        unfinished.is_unfinished, unfinished.interrupted = True, error
        return unfinished

    def _state_within_epoch(self) -> Checkpoint:
        """This rank's state after its last update, with its place in the epoch."""
        is_evaluating = self._evaluates_together and len(self.history) < self.epoch
        is_within = self._is_in_pass or is_evaluating
        state = self._checkpoint()
        assert state is not None
        state.epoch = self.epoch - is_evaluating
        now = self.clock(), self.comm.bytes_sent - self._evaluation_bytes
        seconds, nbytes = self._at_evaluation if is_evaluating else now
        state.within_epoch = {
            "step": self.steps - self._steps_before_pass if is_within else 0,
            "steps": self.steps,
            "seconds": seconds,
            "bytes": self._bytes_before + nbytes,
            "loss_sum": self._loss_sum if is_within else 0.0,
            "counted": self._counted if is_within else 0.0,
        }
        return state

    def state(self) -> Checkpoint | None:
        """Everything that a resumed run needs, on rank 0; None elsewhere.

        The ranks of the first replica call it together.
        """
        return self._checkpoint() if self.replica == 0 else None

    def _checkpoint(self) -> Checkpoint | None:
        model, optimizer = self.strategy.state_dict(self), self.partition.optimizer_state(self.optimizer)
        if model is None or optimizer is None:
            return None
        return Checkpoint(
            epoch=self.epoch,
            model=model,
            optimizer=optimizer,
            schedule=None if self.schedule is None else self.schedule.state_dict(),
            history=self.history,
            config=self.config,
        )

    def _end_epoch(self, steps: int, samples_per_second: float) -> None:
        """Evaluate the model on all ranks together; append a row to the history, save, and report."""
        comm = self.comm
        seconds, nbytes = self._at_evaluation = self.clock(), comm.bytes_sent - self._evaluation_bytes
        comm.mark("evaluation")
        sums = np.array([self._loss_sum, self._counted], dtype=np.float64)
        loss_sum, seen = comm.all_reduce(sums, algorithm=self.algorithm)
        for buffer in self.model.buffers():
            if buffer.held:  # batch norm's running statistics are taken from replica 0
                buffer.copy_(self.mesh["dp"].broadcast(buffer.numpy()))
        self.model.eval()
        predict = partial(self.strategy.predict, self)
        mine = np.arange(len(self.test))[self.replica :: self.replicas]
        test_loss, accuracy = evaluate(self.job, predict, self.test, mine, comm, self.algorithm, self.plan.tp)
        if not math.isfinite(test_loss) and has_labels(self.job, self.test):
            check_finite(test_loss, self.model, self.epoch, self.step + 1, comm.rank)  # after the epoch's last update
        row = HistoryRow(
            epoch=self.epoch,
            loss=float(loss_sum / seen) if seen else math.nan,
            test_loss=test_loss,
            accuracy=accuracy,
            seconds=seconds,
            samples_per_second=samples_per_second,
            bytes=self._bytes_before + self.partition.of_first_rank(nbytes),
            lr=self.optimizer.param_groups[0]["lr"],
            steps=self.steps,
            samples=self.epoch * len(self.train),
        )
        self.history.append(row)
        self._save()
        if self._reports:
            self._report(steps, samples_per_second, row)
        self._evaluating += self.clock() - seconds
        self._evaluation_bytes = comm.bytes_sent - nbytes
        comm.mark("data")

    def _save(self) -> None:
        if self.folder is not None and (state := self.state()) is not None:
            state.save(self.folder / CHECKPOINT_FILE)

    def _report(self, steps: int, samples_per_second: float, row: HistoryRow | None = None) -> None:
        """Send the progress in an epoch of `steps` steps to the caller; with a row, at the end of the epoch."""
        epochs, loss = self.job.epochs, self._loss_sum / self._counted if self._counted else math.nan
        epoch = self.epoch if row else min(self.epoch + 1, epochs)
        shares = self.comm.shares()
        self.comm.tell(Progress(epoch, epochs, self.step + 1, steps, loss, samples_per_second, shares, row))
