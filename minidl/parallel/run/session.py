"""Session: one rank's side of a training run: its model, its optimizer, its minibatches, its records.

A strategy is a loop over `session.batches()` or its siblings. What every strategy needs as well (the shuffle, the rate
schedule, losses, evaluation or a snapshot at the end of an epoch, checkpoints, progress) happens here, between one
minibatch and the next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from minidl import random
from minidl.cluster.comm import Communicator
from minidl.data import DataLoader
from minidl.data.loader import Batch
from minidl.kernels import Array
from minidl.nn import Module, Parameter, clip_grad_norm_
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.job import Job
from minidl.parallel.run.checkpoint import CHECKPOINT_FILE, Checkpoint
from minidl.parallel.run.divergence import check_finite
from minidl.parallel.run.evaluation import evaluate
from minidl.parallel.run.minibatches import common_minibatches, own_minibatches
from minidl.parallel.run.progress import Progress, per_second
from minidl.parallel.run.rank_record import RankRecord, Snapshot
from minidl.tensor import Tensor

PROGRESS_SECONDS = 0.1  # at most ten messages a second


class Session:
    """One rank's model, optimizer, schedule and minibatches.

    comm: this rank's communicator. nodes: ranks 0 to nodes - 1 train; the others are servers. folder: where rank 0
    writes `checkpoint.npz` after every epoch of `batches()`, or None. checkpoint: where to go on, or None to begin.
    algorithm: of the all-reduces at the end of an epoch.
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
        self.job, self.comm, self.nodes, self.folder, self.config = job, comm, nodes, folder, config or {}
        self.algorithm = algorithm
        self.train, self.test = job.build_data()
        self.model = job.build_model()
        self.parameters = list(self.model.parameters())
        self._schedule_steps = 0  # of this schedule, in this run
        self._begin_optimizer(len(self.train))
        self.history: list[dict[str, Any]] = []
        self.epoch = 0  # epochs (of `passes` and `stream`: passes over this node's shard) that are done
        self.step = 0  # minibatches of this epoch before the present one
        self.steps = 0  # updates of this rank's weights
        self.finished = False  # of a stream: all samples have been processed
        if checkpoint is not None:
            checkpoint.restore(self.model, self.optimizer, self.schedule)
            self.epoch, self.history = checkpoint.epoch, list(checkpoint.history)
        before: dict[str, Any] = self.history[-1] if self.history else {"seconds": 0.0, "bytes": 0, "steps": 0}
        self._seconds_before, self._bytes_before, self.steps = before["seconds"], before["bytes"], before["steps"]
        self._started = comm.now()
        self._is_judged_here = False  # rather than by snapshots, after the run
        self._evaluating = 0.0  # seconds
        self._evaluation_bytes = 0
        self._loss_sum, self._samples_seen = 0.0, 0  # of this rank in this epoch
        self._losses: list[tuple[float, int]] = []
        self._buffers: list[list[Array]] = []
        self._layer_names: dict[Module, str] = {}
        self._bytes_by_pass: list[int] = []
        self._snapshots: list[Snapshot] = []
        self._recorded: dict[str, list[Any]] = defaultdict(list)

    # Minibatches

    def batches(self) -> Iterator[Batch]:
        """This rank's part of every minibatch of the run, for nodes that all have the same weights.

        At the end of each epoch the nodes evaluate their model together, report and save.
        """
        self._is_judged_here = True
        if self.epoch == 0:
            self._save()  # so that a run that is stopped in its first epoch can be resumed
        while self.epoch < self.job.epochs:
            loader = common_minibatches(self)
            samples = 0  # of all ranks
            epoch_started = self.clock()
            for batch in self._one_pass(loader):
                yield batch
                samples += batch.total
            self._end_epoch(len(loader), per_second(samples, self.clock() - epoch_started))

    def parts(self, weights: Callable[[], Array] | None = None) -> Iterator[Batch]:
        """This rank's part of every minibatch of the run, for nodes that have weights of their own.

        At the end of each epoch a snapshot is kept of what `weights` returns; by default of this rank's own.
        """
        while self.epoch < self.job.epochs:
            yield from self._one_pass(common_minibatches(self))
            self.keep(self.epoch, (weights or self.weights)())

    def passes(self, seed: int | None = None) -> Iterator[Batch]:
        """This rank's own minibatches of `batch_size` samples of its own shard, `epochs` passes over it.

        The schedule counts the steps of such a pass. With a seed, of the whole training set, as one node reads it whose
        job has that seed. Each pass ends with a snapshot of the weights.
        """
        if seed is None:
            self._begin_optimizer(len(range(self.comm.rank, len(self.train), self.nodes)))
        while self.epoch < self.job.epochs:
            yield from self._one_pass(own_minibatches(self, seed), None if seed is None else (seed, 0))
            self.keep(self.epoch, self.weights())

    def stream(self) -> Iterator[Batch]:
        """This rank's own minibatches of `batch_size` samples of its own shard, pass after pass until `finished`.

        Faster nodes make more of them. The rank that owns the authoritative weights calls `processed` and notifies the
        others.
        """
        while True:
            for batch in self._one_pass(own_minibatches(self)):
                yield batch
                if self.finished:
                    self._end_pass()
                    return

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

    def begin_forward(self, replica: int, micro_batch: int = 0, seed: int | None = None) -> None:
        """The next forward pass draws the dropout masks of this replica and micro-batch, at the present epoch and step.

        Every minibatch comes with this rank's number as `replica` and with micro-batch 0. seed: the job's by default.
        """
        seed = self.job.seed if seed is None else seed
        random.begin_forward(random.ForwardPass(self._layer_names, seed, self.epoch, self.step, replica, micro_batch))

    # Weights and gradients

    def update(self, lr_factor: float = 1.0, samples: int | None = None) -> None:
        """Clip the gradient; one step of the optimizer, at `lr_factor` times its learning rate, and of the schedule.

        samples: of all nodes up to and including this update, for strategies whose updates are not one for each common
        minibatch: see `advance_schedule`.
        """
        self.comm.mark("update")
        self.clip_gradient()
        rates = [group["lr"] for group in self.optimizer.param_groups]
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * lr_factor
        self.optimizer.step()
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate  # schedules go on from the rate before
        self.advance_schedule(samples)
        self.steps += 1
        self.comm.mark("data")

    def advance_schedule(self, samples: int | None) -> None:
        """Bring the schedule to where Serial's is after `samples` samples, never back; None: one step."""
        now = self._schedule_steps
        steps = now + 1 if samples is None else self.job.steps_after(samples, len(self.train))
        self._schedule_steps = max(now, steps)
        for _ in range(steps - now if self.schedule is not None else 0):
            self.schedule.step()

    def clip_gradient(self) -> None:
        """Scale the gradients, in place, to the job's `clip_norm`; `update` does it, other ways to apply them call it.

        The norm is that of this rank's parameters, so a server that holds a slice of them never clips.
        """
        if self.job.clip_norm is not None:
            clip_grad_norm_(self.parameters, self.job.clip_norm)

    def weights(self) -> Array:
        """A copy of all weights as one vector."""
        return vector.weights(self.parameters)

    def set_weights(self, weights: Array) -> None:
        """Take over all weights from one vector, but those of frozen parameters, which stay as they are to the bit."""
        vector.set_weights(self.parameters, weights, keep_frozen=True)

    def gradient(self) -> Array:
        """A copy of all gradients as one vector; zeros where there is none."""
        return vector.gradient(self.parameters)

    def set_gradient(self, gradient: Array) -> None:
        """Take over all gradients from one vector, for `update`."""
        vector.set_gradient(self.parameters, gradient)

    # Servers, and nodes without one

    @property
    def server(self) -> int:
        """The number of this server, from 0; below 0 on nodes."""
        return self.comm.rank - self.nodes

    @property
    def total_samples(self) -> int:
        """The samples that all nodes together process in the run: `epochs` times the training set."""
        return self.job.epochs * len(self.train)

    def hold(self, start: int, stop: int) -> None:
        """Keep only elements `start:stop` of the flattened weights, with their own optimizer and schedule."""
        self.parameters = [Parameter(self.weights()[start:stop])]
        self.job = replace(self.job, clip_norm=None)  # clients clip the whole gradient before they push it
        self._begin_optimizer(len(self.train))

    def processed(self, samples: int, weights: Callable[[], Array], offset: int = 0) -> None:
        """Report the samples that all nodes together have processed; at an epoch's end, keep a snapshot of `weights`.

        `finished` is set when it was the last. offset: where in the vector of all weights these begin.
        """
        for epoch in range(len(self._snapshots) + 1, min(samples // len(self.train), self.job.epochs) + 1):
            self.keep(epoch, weights(), offset)
        self.finished = self.finished or samples >= self.total_samples

    def keep(self, epoch: int, weights: Array, offset: int = 0) -> None:
        """Keep a snapshot of the weights (not copied) with which `epoch` epochs ended."""
        lr = self.optimizer.param_groups[0]["lr"]
        self._snapshots.append(Snapshot(epoch, self.clock(), self.steps, lr, weights, offset))

    def record(self, name: str, value: Any) -> None:
        """Add a value to this rank's list of that name, which the report has: `report.recorded[name][rank]`."""
        self._recorded[name].append(value)

    def clock(self) -> float:
        """Seconds of training so far, those before a checkpoint included, the evaluation of the model not."""
        return float(self._seconds_before + self.comm.now() - self._started - self._evaluating)

    # What remains of it

    def result(self) -> RankRecord:
        """What the rank brings back."""
        return RankRecord(
            digest=vector.digest(self.parameters),
            state=self.state() if self._is_judged_here and self.comm.rank == 0 else None,
            snapshots=self._snapshots,
            losses=self._losses,
            buffers=self._buffers,
            recorded=dict(self._recorded),
            bytes_by_pass=self._bytes_by_pass,
            bytes_sent=self.comm.bytes_sent,
        )

    def state(self) -> Checkpoint:
        """All that a resumed run needs."""
        return Checkpoint(
            epoch=self.epoch,
            model=self.model.state_dict(),
            optimizer=self.optimizer.state_dict(),
            schedule=None if self.schedule is None else self.schedule.state_dict(),
            history=self.history,
            config=self.config,
        )

    # Below the surface

    def _begin_optimizer(self, samples: int) -> None:
        """Make a new optimizer of the parameters, and its schedule for epochs of `samples` samples."""
        self.optimizer = self.job.optimizer(self.parameters)
        self.schedule = self.job.build_schedule(self.optimizer, samples)
        self._schedule_steps = 0

    def _one_pass(self, loader: DataLoader, seed_and_replica: tuple[int, int] | None = None) -> Iterator[Batch]:
        """The minibatches of one epoch of the loader, with the random numbers of this replica or of the one given."""
        loader.set_epoch(self.epoch)
        seed, replica = seed_and_replica or (self.job.seed, self.comm.rank)
        self.model.train()
        self._layer_names = {module: name for name, module in self.model.named_modules()}
        self._loss_sum, self._samples_seen = 0.0, 0
        samples, started = 0, self.clock()
        last_told = started
        for self.step, batch in enumerate(loader):
            self.begin_forward(replica, seed=seed)
            yield batch
            samples += batch.total
            now = self.clock()
            if self.comm.rank == 0 and now - last_told > PROGRESS_SECONDS:
                last_told = now
                self._tell(len(loader), per_second(samples, now - started))
        self._end_pass()

    def _end_pass(self) -> None:
        random.begin_forward(None)
        self.epoch += 1
        self._losses.append((self._loss_sum, self._samples_seen))
        self._bytes_by_pass.append(self.comm.bytes_sent)
        self._buffers.append([buffer.numpy().copy() for buffer in self.model.buffers()])

    def _end_epoch(self, steps: int, samples_per_second: float) -> None:
        comm = self.comm
        seconds, nbytes = self.clock(), comm.bytes_sent - self._evaluation_bytes
        comm.mark("evaluation")
        sums = np.array([self._loss_sum, self._samples_seen], dtype=np.float64)
        loss_sum, seen = comm.all_reduce(sums, algorithm=self.algorithm)
        for buffer in self.model.buffers():
            buffer.copy_(comm.broadcast(buffer.numpy()))  # batch norm: rank 0's running statistics hold
        test_loss, accuracy = evaluate(self.job, self.model, self.test, comm, self.algorithm)
        check_finite(test_loss, self.model, self.epoch, self.step + 1, comm.rank)  # what the last update has done
        self.history.append(
            {
                "epoch": self.epoch,
                "loss": float(loss_sum / max(seen, 1)),
                "test_loss": test_loss,
                "accuracy": accuracy,
                "seconds": seconds,
                "samples_per_second": samples_per_second,
                "bytes": self._bytes_before + nbytes,
                "lr": self.optimizer.param_groups[0]["lr"],
                "steps": self.steps,
                "samples": self.epoch * len(self.train),
            }
        )
        self._save()
        if comm.rank == 0:
            self._tell(steps, samples_per_second, self.history[-1])
        self._evaluating += self.clock() - seconds
        self._evaluation_bytes = comm.bytes_sent - nbytes
        comm.mark("data")

    def _save(self) -> None:
        if self.folder is not None and self.comm.rank == 0:
            self.state().save(self.folder / CHECKPOINT_FILE)

    def _tell(self, steps: int, samples_per_second: float, row: dict[str, Any] | None = None) -> None:
        loss = self._loss_sum / max(self._samples_seen, 1)
        self.comm.tell(Progress.of_session(self, steps, loss, samples_per_second, row))
