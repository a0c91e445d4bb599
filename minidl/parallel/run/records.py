"""Records of a rank: its clock, the losses and buffers of each pass, snapshots, and what the strategy records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minidl import random
from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.kernels import Array
from minidl.nn import Module
from minidl.nn.parameter import Buffer
from minidl.parallel.job import Job
from minidl.parallel.run.forward import ForwardPasses
from minidl.parallel.run.rank_record import RankRecord, Snapshot


class Records(ForwardPasses):
    """A rank that records what it does.

    Attributes, in addition to those of forward passes
        finished  in a `stream`: all samples have been processed
    """

    def __init__(self, job: Job, comm: Communicator, model: Module, mesh: Mesh[Communicator] | None = None) -> None:
        super().__init__(job, comm, model, mesh)
        self.finished = False
        self._evaluates_together = False  # else by snapshots, after the run
        self._started, self._seconds_before = comm.now(), 0.0
        self._evaluating = 0.0  # seconds that are not training
        self._record = RankRecord()
        # Of an elastic run: minibatches of this epoch that were done in an earlier launch, and their losses
        self._done_before, self._loss_before = 0, (0.0, 0)
        self._is_elastic = self._is_in_pass = False
        self._steps_before_pass = 0
        self._sent_before = 0  # bytes, in earlier launches
        self._before_minibatch: tuple[int, float, float, list[Array]] | None = None

    def record(self, name: str, value: Any) -> None:
        """Append a value to this rank's list of that name: `report.recorded[name][rank]`."""
        self._record.recorded[name].append(value)

    @property
    def bytes_sent(self) -> int:
        """Bytes that this rank has sent since the start of the run, evaluation included."""
        return self._sent_before + self.comm.bytes_sent

    def clock(self) -> float:
        """Seconds of training so far: those before a checkpoint count, evaluation does not."""
        return float(self._seconds_before + self.comm.now() - self._started - self._evaluating)

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

    def _keep_whole(self, weights: Callable[[], Array] | None = None) -> None:
        """Keep a snapshot at the end of this epoch: of what `weights` returns, or of the whole replica's weights."""
        if weights is not None or not self.partition.is_split:
            self.keep(self.epoch, (weights or self.weights)())
            return
        whole = self.partition.whole(
            {self.partition.names[parameter]: parameter.numpy() for parameter in self.parameters}
        )
        if whole is not None:
            self.keep(self.epoch, np.concatenate([array.reshape(-1) for array in whole.values()]))

    def _begin_pass(self) -> int:
        """Begin a pass; returns the number of its first minibatch that is still to be done."""
        self._begin_epoch_of_losses()
        first, self._done_before = self._done_before, 0
        (self._loss_sum, self._counted), self._loss_before = self._loss_before, (0.0, 0)
        self._steps_before_pass, self._is_in_pass = self.steps - first, True
        return first

    def _begin_minibatch(self) -> None:
        """In an elastic run, keep what a minibatch changes before its update."""
        if self._is_elastic:
            buffers = [buffer.numpy().copy() for buffer in self.model.buffers()]
            self._before_minibatch = self.steps, self._loss_sum, self._counted, buffers

    def _undo_unfinished_minibatch(self) -> None:
        """Take back what a minibatch without an update has changed: the mean loss and batch norm's statistics."""
        if self._before_minibatch is not None and self.steps == self._before_minibatch[0]:
            _, self._loss_sum, self._counted, buffers = self._before_minibatch
            for buffer, before in zip(self.model.buffers(), buffers, strict=True):
                buffer.copy_(before)

    def _end_pass(self) -> None:
        random.begin_forward(None)
        self._is_in_pass, self._before_minibatch = False, None
        self.epoch += 1
        self._record.losses.append((self._loss_sum, self._counted))
        self._record.bytes_by_pass.append(self.bytes_sent)
        if not (self.partition.is_split and self._evaluates_together):
            buffers = self.partition.whole(
                {name: b.numpy().copy() for name, b in self.partition.held.items() if isinstance(b, Buffer)}
            )
            self._record.buffers.append(list((buffers or {}).values()))
