"""What one rank counts while it trains: EpochRecord, losses and minibatches; Meter, seconds and bytes."""

from __future__ import annotations

import math

from minidl.cluster.comm import Communicator
from minidl.kernels import Array
from minidl.nn import Module


class EpochRecord:
    """The progress of one rank in the present epoch, or in the present pass over its shard.

    loss_sum      sum of this rank's losses, each multiplied by its weight: the samples or labels that count in it
    counted       sum of these weights: `loss_sum / counted` is the mean loss
    steps_before  updates of this rank's weights before the epoch
    is_open       whether the epoch has begun and not ended
    """

    def __init__(self) -> None:
        self.loss_sum, self.counted = 0.0, 0.0
        self.steps_before = 0
        self.is_open = False
        self._resumed = 0, 0.0, 0.0  # minibatches of the next epoch that an earlier launch has done, and their losses
        self._unfinished: tuple[int, float, float, list[Array]] | None = None

    def resume(self, minibatches: int, loss_sum: float, counted: float) -> None:
        """Let the next epoch begin after that number of minibatches, with their losses."""
        self._resumed = minibatches, loss_sum, counted

    def begin(self, steps: int) -> int:
        """Begin an epoch, after that many updates; returns the number of its first minibatch still to be done."""
        first, self.loss_sum, self.counted = self._resumed
        self._resumed = 0, 0.0, 0.0
        self.steps_before, self.is_open = steps - first, True
        return first

    def end(self) -> None:
        """End the epoch; its losses stay until the next one begins."""
        self.is_open, self._unfinished = False, None

    def count(self, loss: float, counted: float) -> None:
        """Count the mean loss of a minibatch."""
        self.loss_sum += loss * counted
        self.counted += counted

    @property
    def mean_loss(self) -> float:
        return self.loss_sum / self.counted if self.counted else math.nan

    # In an elastic run, which may end in the middle of a minibatch

    def keep(self, steps: int, model: Module) -> None:
        """Keep what a minibatch changes before it makes the update after `steps`: losses, batch norm's statistics."""
        self._unfinished = steps, self.loss_sum, self.counted, [buffer.numpy().copy() for buffer in model.buffers()]

    def undo(self, steps: int, model: Module) -> None:
        """Take back what a minibatch has changed, unless it has made its update."""
        if self._unfinished is not None and steps == self._unfinished[0]:
            _, self.loss_sum, self.counted, buffers = self._unfinished
            for buffer, before in zip(model.buffers(), buffers, strict=True):
                buffer.copy_(before)


class Meter:
    """Measures the training of one rank. Earlier launches of the run count, evaluation does not.

    sent_before     bytes that it sent in earlier launches, evaluation included
    bytes_before    bytes of training in earlier launches
    seconds_before  seconds of training in earlier launches
    at_evaluation   seconds of training when the last evaluation began, and bytes of training in this launch
    """

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self._started = 0.0
        self._evaluation_seconds, self._evaluation_bytes = 0.0, 0
        self.sent_before = self.bytes_before = 0
        self.seconds_before = 0.0
        self.at_evaluation = 0.0, 0

    def start(self) -> None:
        """Training begins now."""
        self._started = self._comm.now()

    def seconds(self) -> float:
        """Seconds of training since the start of the run."""
        return float(self.seconds_before + self._comm.now() - self._started - self._evaluation_seconds)

    def bytes_sent(self) -> int:
        """Bytes that the rank has sent since the start of the run, evaluation included."""
        return self.sent_before + self._comm.bytes_sent

    def training(self) -> tuple[float, int]:
        """Seconds of training since the start of the run, and bytes of training in this launch."""
        return self.seconds(), self._comm.bytes_sent - self._evaluation_bytes

    def begin_evaluation(self) -> tuple[float, int]:
        """Stop counting, because evaluation begins; returns `training()`."""
        self.at_evaluation = self.training()
        return self.at_evaluation

    def end_evaluation(self) -> None:
        """Count again, because training goes on."""
        seconds, nbytes = self.at_evaluation
        self._evaluation_seconds += self.seconds() - seconds
        self._evaluation_bytes = self._comm.bytes_sent - nbytes
