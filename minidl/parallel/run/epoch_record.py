"""The record of an epoch: the losses and minibatches that one rank has processed so far."""

from __future__ import annotations

import math

from minidl.kernels import Array
from minidl.nn import Module


class EpochRecord:
    """The progress of one rank in the present epoch, or in the present pass over its shard.

    loss_sum      sum of this rank's losses, each multiplied by what counts in it
    counted       sum of what counts in them: `loss_sum / counted` is the mean loss
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
