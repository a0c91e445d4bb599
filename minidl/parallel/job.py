"""Job: what to train. A strategy says how, an engine says where; none of them changes what the job means."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from math import ceil, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl import functional as F
from minidl import optim, random
from minidl.data import Dataset, Splits
from minidl.data.sampler import epoch_order
from minidl.data.shards import order_of_shards
from minidl.kernels import Array
from minidl.nn import Module
from minidl.random import Purpose, stream
from minidl.tensor import Tensor

Loss = Callable[[Tensor, Array], Tensor]

SHARDS = ("shuffled", "fixed", "by_label")


def classification_loss(outputs: Tensor, labels: Array) -> Tensor:
    """The mean cross entropy of outputs (n, ..., classes) with labels (n, ...)."""
    return F.cross_entropy(outputs.reshape(-1, outputs.shape[-1]), labels.reshape(-1))


@dataclass(frozen=True)
class Job:
    """What to train: every rank can build the same model, data and optimizer from it.

    model: a function that makes the Module (called on every rank after seeding, so that all start from the same
    weights), or a Module, of which every rank gets a copy.
    data: a function that makes the Splits (train, test), or Splits.
    optimizer: a function that makes the Optimizer of the parameters that it is given.
    schedule: a function `(optimizer, steps_per_epoch)` that makes a learning-rate schedule, advanced after every
    update; or None.
    loss: a function `(outputs, labels)` that gives the mean loss over the samples; the cross entropy by default.
    batch_size: samples a minibatch, all nodes together; of asynchronous strategies, samples a gradient.
    batch_schedule: a function from the epoch (from 0) to its batch size, for minibatches that grow; then `batch_size`
    only says from how many steps an epoch `schedule` counts. epochs: passes over the training set.
    shards: which samples a node reads. "shuffled": every epoch deals one new shuffle to all nodes. "fixed": the
    training set is shuffled once and cut into a shard a node, which the node keeps and shuffles anew in every epoch.
    "by_label": likewise, but sorted by label instead, so that a node sees few of the classes. With the latter two the
    samples of a minibatch depend on the number of nodes.
    seed: of the weights, the shuffles and dropout.
    clip_norm: the largest 2-norm of a gradient, all parameters together, each counted once; a longer gradient is scaled
    down to it, as `nn.clip_grad_norm_` does. None: no clipping. Clipped is what the optimizer gets. Synchronous
    strategies: the mean over the whole minibatch, after the all-reduce, alike on all nodes. Strategies whose nodes have
    weights of their own, and Hogwild: each node's own gradient. A parameter server, which may hold only a slice: a
    worker's gradient of each minibatch, before it is pushed. A quorum: the mean of an update.

    The ranks receive the job by cloudpickle: functions, lambdas and classes of a notebook or script will do.
    Errors: ValueError for a batch size or a number of epochs below 1, a clip_norm that is not above 0, or a seed
    below 0.

    >>> from minidl import data, nn
    >>> job = Job(
    ...     model=lambda: nn.models.MLP(64, 32, 10),
    ...     data=data.digits,
    ...     optimizer=lambda parameters: optim.SGD(parameters, lr=0.1),
    ...     epochs=1,
    ... )
    """

    model: Callable[[], Module] | Module
    data: Callable[[], Splits] | Splits
    optimizer: Callable[[Iterable[Any]], optim.Optimizer]
    schedule: Callable[[optim.Optimizer, int], Any] | None = None
    loss: Loss = classification_loss
    batch_size: int = 64
    batch_schedule: Callable[[int], int] | None = None
    epochs: int = 5
    shards: str = "shuffled"
    seed: int = 0
    clip_norm: float | None = None

    def __post_init__(self) -> None:
        for name in ("batch_size", "epochs"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
            object.__setattr__(self, name, int(value))  # also of numpy's whole numbers
        if self.shards not in SHARDS:
            raise ValueError(f"unknown shards {self.shards!r}: choose one of {', '.join(SHARDS)}")
        if self.clip_norm is not None:
            check_clip_norm(self.clip_norm)
        if not isinstance(self.seed, (int, np.integer)) or self.seed < 0:
            raise ValueError(f"seed must be a whole number of at least 0, got {self.seed!r}")
        object.__setattr__(self, "seed", int(self.seed))
        for epoch in range(self.epochs):
            size = self.batch_size_of(epoch)
            if not isinstance(size, (int, np.integer)) or size < 1:
                raise ValueError(
                    f"batch_schedule({epoch}) must be a whole number of at least 1, as a batch size is, got {size!r}"
                )

    def batch_size_of(self, epoch: int) -> int:
        """Samples a minibatch in that epoch, from 0."""
        return self.batch_size if self.batch_schedule is None else self.batch_schedule(epoch)

    @property
    def smallest_batch(self) -> int:
        """The batch size of the epoch that has the smallest minibatches."""
        return min(self.batch_size_of(epoch) for epoch in range(self.epochs))

    def check_shards(self) -> None:
        """Raise ValueError if the training set has no labels to be sorted by, but shall be."""
        if self.shards == "by_label" and (y := self.build_data().train.y).ndim != 1:
            raise ValueError(f'shards="by_label" needs one label a sample, but the targets have shape {y.shape}')

    def order(self, train: Dataset, nodes: int, batch_size: int) -> Callable[[int], NDArray[np.int64]]:
        """Return the function that maps an epoch to its sample order, for `nodes` nodes and this minibatch size."""
        n = len(train)
        if self.shards == "shuffled":
            return partial(epoch_order, n, True, self.seed)
        by_label = self.shards == "by_label"
        samples = np.argsort(train.y, kind="stable") if by_label else stream(Purpose.SHARDS, self.seed).permutation(n)
        return partial(order_of_shards, samples, nodes, batch_size, self.seed)

    def build_model(self) -> Module:
        """The model with its first weights: the same on every rank. The caller's generator is left as it is."""
        if isinstance(self.model, Module):
            return copy.deepcopy(self.model)
        with random.using(stream(Purpose.WEIGHTS, self.seed)):
            return self.model()

    def build_data(self) -> Splits:
        """The training set and the test set."""
        return self.data if isinstance(self.data, Splits) else self.data()

    def steps_after(self, samples: int, n: int) -> int:
        """Whole minibatches among the first `samples` samples of the run; n: the size of the training set.

        The last minibatch of an epoch may be smaller. Serial has made that many updates by then, and its schedule that
        many steps.
        """
        epochs, rest = divmod(samples, n)
        sizes = [self.batch_size_of(min(epoch, self.epochs - 1)) for epoch in range(epochs + 1)]
        return sum(ceil(n / size) for size in sizes[:-1]) + rest // sizes[-1]

    def build_schedule(self, optimizer: optim.Optimizer, samples: int) -> Any:
        """The learning-rate schedule for a training set of `samples` samples, or None."""
        return None if self.schedule is None else self.schedule(optimizer, ceil(samples / self.batch_size))


def check_clip_norm(clip_norm: float) -> None:
    """Raise TypeError for no number, ValueError unless it is finite and above 0."""
    if isinstance(clip_norm, bool) or not isinstance(clip_norm, (int, float, np.floating)):
        raise TypeError(f"clip_norm must be a number above 0, or None for no clipping, got {clip_norm!r}")
    if not (clip_norm > 0 and isfinite(clip_norm)):
        raise ValueError(f"clip_norm must be a finite number above 0, or None for no clipping, got {clip_norm!r}")
