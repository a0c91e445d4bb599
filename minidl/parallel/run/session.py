"""Session: one rank's side of a training run, from its minibatches to what it brings back.

A strategy is a loop over `session.batches()` or one of its siblings. The session does the rest between two minibatches:
shuffle, losses, evaluation or a snapshot at the end of an epoch, checkpoints, progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from minidl import random
from minidl.cluster.comm import Communicator
from minidl.data import DataLoader
from minidl.data.loader import Batch
from minidl.kernels import Array
from minidl.nn import Module
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.job import Job
from minidl.parallel.run.checkpoint import CHECKPOINT_FILE, Checkpoint
from minidl.parallel.run.divergence import check_finite
from minidl.parallel.run.evaluation import evaluate
from minidl.parallel.run.history import HistoryRow, per_second
from minidl.parallel.run.learner import Learner
from minidl.parallel.run.minibatches import common_minibatches, own_minibatches
from minidl.parallel.run.progress import Progress
from minidl.parallel.run.rank_record import RankRecord, Snapshot
from minidl.tensor import Tensor

PROGRESS_SECONDS = 0.1  # at most ten messages a second


class Session(Learner):
    """One rank's learner (model, optimizer, schedule), its minibatches and its records.

    Parameters
        job         what to train
        comm        this rank's communicator
        nodes       ranks 0 to nodes - 1 train; the others are servers
        folder      where rank 0 writes `checkpoint.npz` after every epoch of `batches()`; None: nowhere
        checkpoint  state to go on from; None: from the start
        config      kept in the checkpoints for the caller
        algorithm   all-reduce of losses and accuracies at the end of an epoch

    Attributes, in addition to the learner's
        epoch     epochs done; in `passes` and `stream`, passes over this node's shard
        step      minibatches of this epoch before the present one
        finished  in a `stream`: all samples have been processed
        history   rows of the epochs done, in `batches`
    """

    def __init__(
        self,
        job: Job,
        comm: Communicator,
        nodes: int,
        folder: Path | None = None,
        checkpoint: Checkpoint | None = None,
        config: dict[str, Any] | None = None,
        algorithm: str = "auto",
    ) -> None:
        super().__init__(job, comm)
        self.nodes, self.folder, self.config, self.algorithm = nodes, folder, config or {}, algorithm
        self.history: list[HistoryRow] = []
        self.epoch = self.step = 0
        self.finished = False
        if checkpoint is not None:
            checkpoint.restore(self.model, self.optimizer, self.schedule)
            self.epoch, self.history = checkpoint.epoch, list(checkpoint.history)
        self._seconds_before, self._bytes_before = 0.0, 0
        if self.history:
            last = self.history[-1]
            self._seconds_before, self._bytes_before, self.steps = last["seconds"], last["bytes"], last["steps"]
        self._started = comm.now()
        self._evaluating, self._evaluation_bytes = 0.0, 0  # seconds and bytes that are not training
        self._evaluates_together = False  # else by snapshots, after the run
        self._loss_sum, self._samples_seen = 0.0, 0  # of this rank in this epoch
        self._layer_names: dict[Module, str] = {}
        self._record = RankRecord()

    # Minibatches

    def batches(self) -> Iterator[Batch]:
        """This rank's share of every minibatch of the run, for nodes that all have the same weights.

        At the end of each epoch the nodes evaluate their model together, report and save.
        """
        self._evaluates_together = True
        if self.epoch == 0:
            self._save()  # so that a run that is stopped in its first epoch can be resumed
        while self.epoch < self.job.epochs:
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
        while self.epoch < self.job.epochs:
            yield from self._one_pass(self._common_minibatches())
            self.keep(self.epoch, (weights or self.weights)())

    def passes(self, seed: int | None = None) -> Iterator[Batch]:
        """This rank's own minibatches of `batch_size` samples of its own shard, `epochs` passes over it.

        The schedule counts the steps of such a pass. Each pass ends with a snapshot of the weights.
        seed: if given, minibatches of the whole training set instead, as Serial reads it with that seed.
        """
        if seed is None:
            self._begin_schedule(len(range(self.comm.rank, len(self.train), self.nodes)))
        while self.epoch < self.job.epochs:
            yield from self._one_pass(self._own_minibatches(seed), None if seed is None else (seed, 0))
            self.keep(self.epoch, self.weights())

    def stream(self) -> Iterator[Batch]:
        """This rank's own minibatches of `batch_size` samples of its own shard, pass after pass until `finished`.

        Faster nodes make more of them. The rank that owns the authoritative weights calls `processed` and notifies the
        others.
        """
        while True:
            for batch in self._one_pass(self._own_minibatches()):
                yield batch
                if self.finished:
                    self._end_pass()
                    return

    def _common_minibatches(self) -> DataLoader:
        return common_minibatches(self.job, self.train, self.nodes, self.comm.rank, self.epoch)

    def _own_minibatches(self, seed: int | None = None) -> DataLoader:
        return own_minibatches(self.job, self.train, self.nodes, self.comm.rank, self.epoch, seed)

    def _one_pass(self, loader: DataLoader, seed_and_replica: tuple[int, int] | None = None) -> Iterator[Batch]:
        """The minibatches of one epoch of the loader, with the random numbers of this replica or of the one given."""
        loader.set_epoch(self.epoch)
        seed, replica = seed_and_replica or (self.job.seed, self.comm.rank)
        self.model.train()
        self._layer_names = {module: name for name, module in self.model.named_modules()}
        self._loss_sum, self._samples_seen = 0.0, 0
        samples, started = 0, self.clock()
        last_report = started
        for self.step, batch in enumerate(loader):
            self.begin_forward(replica, seed=seed)
            yield batch
            samples += batch.total
            now = self.clock()
            if self.comm.rank == 0 and now - last_report > PROGRESS_SECONDS:
                last_report = now
                self._report(len(loader), per_second(samples, now - started))
        self._end_pass()

    # Forward passes

    def begin_forward(self, replica: int, micro_batch: int = 0, seed: int | None = None) -> None:
        """Set the random numbers of the next forward pass: its dropout masks, at the present epoch and step.

        Before each minibatch the session calls it with this rank's number as `replica`, and micro-batch 0.
        seed: the job's by default.
        """
        seed = self.job.seed if seed is None else seed
        random.begin_forward(random.ForwardPass(self._layer_names, seed, self.epoch, self.step, replica, micro_batch))

    def loss(self, batch: Batch) -> Tensor:
        """This rank's share of the minibatch's mean loss: the shares, and so their gradients, add up over the ranks."""
        return self.local_loss(batch) * batch.weight

    def local_loss(self, batch: Batch) -> Tensor:
        """The mean loss of this rank's samples alone."""
        self.comm.mark("forward")
        mean = self.job.loss(self.model(batch.x), batch.y)
        value = mean.item()
        check_finite(value, self.model, self.epoch + 1, self.step + 1, self.comm.rank, mean)
        self.comm.mark("backward")
        self._loss_sum += value * len(batch.x)  # after the mark, which an abandoned forward pass does not get past
        self._samples_seen += len(batch.x)
        return mean

    # Servers, and snapshots

    @property
    def server(self) -> int:
        """The number of this server, from 0; below 0 on nodes."""
        return self.comm.rank - self.nodes

    @property
    def total_samples(self) -> int:
        """The samples that all nodes together process in the run: `epochs` times the training set."""
        return self.job.epochs * len(self.train)

    def processed(self, samples: int, weights: Callable[[], Array], offset: int = 0) -> None:
        """Count the samples that all nodes together have processed; at an epoch's end, keep a snapshot of `weights`.

        Sets `finished` after the last sample. offset: see `Snapshot`.
        """
        for epoch in range(len(self._record.snapshots) + 1, min(samples // len(self.train), self.job.epochs) + 1):
            self.keep(epoch, weights(), offset)
        self.finished = self.finished or samples >= self.total_samples

    def keep(self, epoch: int, weights: Array, offset: int = 0) -> None:
        """Keep a snapshot of the weights (not copied) at the end of epoch number `epoch`, counted from 1."""
        lr = self.optimizer.param_groups[0]["lr"]
        self._record.snapshots.append(Snapshot(epoch, self.clock(), self.steps, lr, weights, offset))

    # Records

    def record(self, name: str, value: Any) -> None:
        """Append a value to this rank's list of that name: `report.recorded[name][rank]`."""
        self._record.recorded[name].append(value)

    def clock(self) -> float:
        """Seconds of training so far: those before a checkpoint count, evaluation does not."""
        return float(self._seconds_before + self.comm.now() - self._started - self._evaluating)

    def result(self) -> RankRecord:
        """What the rank brings back at the end."""
        done = self._record
        done.digest, done.bytes_sent = vector.digest(self.parameters), self.comm.bytes_sent
        if self._evaluates_together and self.comm.rank == 0:
            done.state = self.state()
        return done

    def state(self) -> Checkpoint:
        """Everything that a resumed run needs."""
        return Checkpoint(
            epoch=self.epoch,
            model=self.model.state_dict(),
            optimizer=self.optimizer.state_dict(),
            schedule=None if self.schedule is None else self.schedule.state_dict(),
            history=self.history,
            config=self.config,
        )

    def _end_pass(self) -> None:
        random.begin_forward(None)
        self.epoch += 1
        self._record.losses.append((self._loss_sum, self._samples_seen))
        self._record.bytes_by_pass.append(self.comm.bytes_sent)
        self._record.buffers.append([buffer.numpy().copy() for buffer in self.model.buffers()])

    def _end_epoch(self, steps: int, samples_per_second: float) -> None:
        """Evaluate the model on all ranks together; append a row to the history, save, and report."""
        comm = self.comm
        seconds, nbytes = self.clock(), comm.bytes_sent - self._evaluation_bytes
        comm.mark("evaluation")
        sums = np.array([self._loss_sum, self._samples_seen], dtype=np.float64)
        loss_sum, seen = comm.all_reduce(sums, algorithm=self.algorithm)
        for buffer in self.model.buffers():
            buffer.copy_(comm.broadcast(buffer.numpy()))  # batch norm's running statistics are taken from rank 0
        test_loss, accuracy = evaluate(self.job, self.model, self.test, comm, self.algorithm)
        check_finite(test_loss, self.model, self.epoch, self.step + 1, comm.rank)  # after the epoch's last update
        row = HistoryRow(
            epoch=self.epoch,
            loss=float(loss_sum / max(seen, 1)),
            test_loss=test_loss,
            accuracy=accuracy,
            seconds=seconds,
            samples_per_second=samples_per_second,
            bytes=self._bytes_before + nbytes,
            lr=self.optimizer.param_groups[0]["lr"],
            steps=self.steps,
            samples=self.epoch * len(self.train),
        )
        self.history.append(row)
        self._save()
        if comm.rank == 0:
            self._report(steps, samples_per_second, row)
        self._evaluating += self.clock() - seconds
        self._evaluation_bytes = comm.bytes_sent - nbytes
        comm.mark("data")

    def _save(self) -> None:
        if self.folder is not None and self.comm.rank == 0:
            self.state().save(self.folder / CHECKPOINT_FILE)

    def _report(self, steps: int, samples_per_second: float, row: HistoryRow | None = None) -> None:
        """Send the progress in an epoch of `steps` steps to the caller; with a row, at the end of the epoch."""
        epochs, loss = self.job.epochs, self._loss_sum / max(self._samples_seen, 1)
        epoch = self.epoch if row else min(self.epoch + 1, epochs)
        shares = self.comm.shares()
        self.comm.tell(Progress(epoch, epochs, self.step + 1, steps, loss, samples_per_second, shares, row))
