"""Forward passes of a training run: their random numbers, their loss, and the mean loss of an epoch."""

from __future__ import annotations

from minidl import random
from minidl.data.loader import Batch
from minidl.grad_mode import recomputing
from minidl.nn import Module
from minidl.nn.stages import shared_modules
from minidl.parallel.mean_loss import Loss, mean_loss
from minidl.parallel.run.divergence import check_finite
from minidl.parallel.run.learner import Learner
from minidl.tensor import Tensor


class ForwardPasses(Learner):
    """A learner that computes losses, step by step of an epoch.

    `loss` and `local_loss` are for ranks that have the whole model. Ranks that hold a partition compute with their
    stages, and the last, which has the outputs, calls `mean_loss`.

    Attributes, in addition to the learner's
        epoch    epochs done; in `passes` and `stream`, passes over this node's shard
        step     minibatches of this epoch before the present one
        replica  number of the replica that this rank belongs to, from 0
    """

    epoch = 0
    step = 0
    replica = 0
    _layer_names: dict[Module, str]
    _loss_sum = 0.0  # of this rank in this epoch
    _counted = 0.0  # what that sum is the mean over

    def begin_forward(self, replica: int, micro_batch: int = 0, seed: int | None = None) -> None:
        """Set the random numbers of the next forward pass: its dropout masks, at the present epoch and step.

        Before each minibatch the session calls it with this rank's `replica`, and micro-batch 0.
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
        mean = mean_loss(self.job.loss, self.model(batch.x), batch.y)
        self.comm.mark("backward")
        self._count(mean, batch)  # after the mark, which an abandoned forward pass does not get past
        return mean

    def mean_loss(self, outputs: Tensor, batch: Batch, of_shard: Loss | None = None) -> Tensor:
        """The mean loss of the batch, from the model's outputs; it is counted in the epoch's, which history shows.

        of_shard: as for `parallel/mean_loss.py`. Raises NonFiniteLoss unless it is finite.
        """
        mean = mean_loss(self.job.loss, outputs, batch.y, of_shard)
        if not recomputing.get():
            self._count(mean, batch)
        return mean

    def _count(self, mean: Tensor, batch: Batch) -> None:
        check_finite(mean.item(), self.model, self.epoch + 1, self.step + 1, self.comm.rank, mean)
        self._loss_sum += mean.item() * batch.counted
        self._counted += batch.counted

    def _begin_epoch_of_losses(self) -> None:
        self._layer_names = _layer_names(self.model)
        self._loss_sum, self._counted = 0.0, 0.0


def _layer_names(model: Module) -> dict[Module, str]:
    """The layers whose random numbers go by their name.

    One that several stages call draws as these stages do: which number a call has, no rank of a pipeline knows.
    """
    try:
        shared = shared_modules([stage] for stage in model.stages())
    except NotImplementedError:  # a model that cannot be cut
        shared = set()
    return {module: name for name, module in model.named_modules() if module not in shared}
