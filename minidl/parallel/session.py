"""Session: one rank's side of a training run: its model, its optimizer, its part of every minibatch, its records.

A strategy is a loop over `session.batches()`; what every strategy needs besides (the shuffle, the rate schedule,
losses, evaluation at the end of an epoch, checkpoints, progress) happens here, between one minibatch and the next.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from minidl import random
from minidl.cluster.comm import Communicator
from minidl.cluster.recorder import Shares
from minidl.data import DataLoader, Dataset
from minidl.data.loader import Batch
from minidl.parallel.checkpoint import CHECKPOINT_FILE, Checkpoint
from minidl.parallel.divergence import check_finite
from minidl.parallel.job import Job
from minidl.tape import no_grad
from minidl.tensor import Tensor

EVALUATION_BATCH = 256  # samples at a time: the activations of a whole test set need not fit into memory
PROGRESS_SECONDS = 0.1  # at most ten messages a second


@dataclass(frozen=True)
class Progress:
    """What rank 0 tells the caller while the run goes on.

    loss: the mean of rank 0's parts of the epoch's minibatches so far. shares: of rank 0's time since the start.
    row: the new row of the history after an epoch, else None.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    samples_per_second: float
    shares: Shares
    row: dict[str, Any] | None = None


class Session:
    """One rank's model, optimizer, schedule and minibatches; see `batches()`, `loss()` and `update()`.

    comm: this rank's communicator. folder: where rank 0 writes `checkpoint.npz` after every epoch, or None.
    checkpoint: where to go on, or None to begin.
    """

    def __init__(
        self, job: Job, comm: Communicator, folder: Path | None, checkpoint: Checkpoint | None, config: dict[str, Any]
    ) -> None:
        self.job, self.comm, self.folder, self.config = job, comm, folder, config
        self.train, self.test = job.build_data()
        self.model = job.build_model()
        self.parameters = list(self.model.parameters())
        self.optimizer = job.optimizer(self.parameters)
        self.schedule = job.build_schedule(self.optimizer, len(self.train))
        self.history: list[dict[str, Any]] = []
        self.epoch = 0
        self.step = 0
        if checkpoint is not None:
            checkpoint.restore(self.model, self.optimizer, self.schedule)
            self.epoch, self.history = checkpoint.epoch, list(checkpoint.history)
        self._seconds_before = self.history[-1]["seconds"] if self.history else 0.0
        self._bytes_before = self.history[-1]["bytes"] if self.history else 0

    def batches(self) -> Iterator[Batch]:
        """This rank's part of every minibatch of the run; evaluates, reports and saves at the end of each epoch."""
        job, comm = self.job, self.comm
        loader = DataLoader(
            self.train, job.batch_size, shuffle=True, seed=job.seed, rank=comm.rank, num_replicas=comm.size
        )
        if self.epoch == 0:
            self._save()  # so that a run that is stopped in its first epoch can be resumed
        self._started = comm.now()
        while self.epoch < job.epochs:
            loader.set_epoch(self.epoch)
            random.manual_seed((job.seed, self.epoch, comm.rank))  # dropout: resuming at an epoch needs no more state
            self.model.train()
            self._loss_sum, self._samples_seen = 0.0, 0  # of this rank
            samples = 0  # of all ranks
            epoch_started = last_told = comm.now()
            for self.step, batch in enumerate(loader):
                yield batch
                samples += batch.total
                now = comm.now()
                if comm.rank == 0 and now - last_told > PROGRESS_SECONDS:
                    last_told = now
                    self._tell(len(loader), per_second(samples, now - epoch_started))
            self.epoch += 1
            self._end_epoch(len(loader), per_second(samples, comm.now() - epoch_started))

    def loss(self, batch: Batch) -> Tensor:
        """This rank's share of the minibatch's mean loss: the shares, and so their gradients, add up over the ranks."""
        self.comm.mark("forward")
        mean = self.job.loss(self.model(batch.x), batch.y)
        value = mean.item()
        check_finite(value, self.model, self.epoch + 1, self.step + 1, self.comm.rank, mean)
        self._loss_sum += value * len(batch.x)
        self._samples_seen += len(batch.x)
        self.comm.mark("backward")
        return mean * batch.weight

    def update(self) -> None:
        """One step of the optimizer, and of the schedule."""
        self.comm.mark("update")
        self.optimizer.step()
        if self.schedule is not None:
            self.schedule.step()
        self.comm.mark("data")

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

    def digest(self) -> str:
        """A hash of all parameters: equal on two ranks exactly if their models are equal to the bit."""
        digest = hashlib.sha256()
        for parameter in self.parameters:
            digest.update(np.ascontiguousarray(parameter.numpy()).tobytes())
        return digest.hexdigest()

    def _end_epoch(self, steps: int, samples_per_second: float) -> None:
        comm = self.comm
        comm.mark("evaluation")
        loss_sum, seen = comm.all_reduce(np.array([self._loss_sum, self._samples_seen], dtype=np.float64))
        for buffer in self.model.buffers():
            buffer.copy_(comm.broadcast(buffer.numpy()))  # batch norm: rank 0's running statistics hold
        test_loss, accuracy = evaluate(self.job, self.model, self.test, comm)
        check_finite(test_loss, self.model, self.epoch, self.step + 1, comm.rank)  # what the last update has done
        self.history.append(
            {
                "epoch": self.epoch,
                "loss": float(loss_sum / max(seen, 1)),
                "test_loss": test_loss,
                "accuracy": accuracy,
                "seconds": self._seconds_before + comm.now() - self._started,
                "samples_per_second": samples_per_second,
                "bytes": self._bytes_before + comm.bytes_sent,
                "lr": self.optimizer.param_groups[0]["lr"],
            }
        )
        self._save()
        if comm.rank == 0:
            self._tell(steps, samples_per_second, self.history[-1])

    def _save(self) -> None:
        if self.folder is not None and self.comm.rank == 0:
            self.state().save(self.folder / CHECKPOINT_FILE)

    def _tell(self, steps: int, samples_per_second: float, row: dict[str, Any] | None = None) -> None:
        epoch = self.epoch if row else self.epoch + 1
        self.comm.tell(
            Progress(
                epoch=epoch,
                epochs=self.job.epochs,
                step=self.step + 1,
                steps=steps,
                loss=self._loss_sum / max(self._samples_seen, 1),
                samples_per_second=samples_per_second,
                shares=self.comm.shares(),
                row=row,
            )
        )


def per_second(samples: int, seconds: float) -> float:
    """The throughput; infinite where a simulation has been told neither what work takes nor what messages take."""
    return samples / seconds if seconds > 0 else math.inf


@no_grad()
def evaluate(job: Job, model: Any, dataset: Dataset, comm: Communicator) -> tuple[float, float]:
    """The mean loss and the accuracy, the fraction of labels that are the likeliest class; the ranks share the work.

    Where the targets are no classes, as in regression, there is no accuracy: it is not a number (nan).
    """
    model.eval()
    total = np.zeros(4, dtype=np.float64)  # losses, samples, right answers, answers
    mine = np.arange(len(dataset))[comm.rank :: comm.size]
    for start in range(0, len(mine), EVALUATION_BATCH):
        x, y = dataset[mine[start : start + EVALUATION_BATCH]]
        outputs = model(x)
        total[:2] += job.loss(outputs, y).item() * len(x), len(x)
        if y.dtype.kind in "iu" and y.shape == outputs.shape[:-1]:
            total[2:] += (outputs.numpy().argmax(axis=-1) == y).sum(), y.size
    losses, samples, right, answers = comm.all_reduce(total)
    return float(losses / max(samples, 1)), float(right / answers) if answers else math.nan
