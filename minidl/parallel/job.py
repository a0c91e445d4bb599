"""Job: what to train. A strategy says how, an engine says where; the job's meaning is independent of both."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from math import ceil
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from minidl import optim, random
from minidl.arguments import one_of, real_number, whole_number
from minidl.data import Dataset, Splits
from minidl.data.in_type import in_type
from minidl.data.pairs import minibatch
from minidl.data.sampler import epoch_order, order_of_shards
from minidl.nn import Module, Stage, building
from minidl.parallel.mean_loss import Loss, check_padding, classification_loss, counts_of
from minidl.random import Purpose, stream

SHARDS = ("shuffled", "fixed", "by_label")
PRECISIONS = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Job:
    """What to train: every rank builds the same model, data and optimizer from it.

    Parameters
        model           function that makes the Module, called on every rank after seeding, so that all ranks start from
                        the same weights; or a Module, of which every rank gets a copy
        data            function that makes the Splits (train, test); or Splits
        optimizer       function that makes the Optimizer of the parameters that it is given
        schedule        function `(optimizer, steps_per_epoch)` that makes a learning-rate schedule, advanced after each
                        update; None: a constant rate
        loss            function `(outputs, labels)` that returns the mean loss over the samples; default: cross
                        entropy, where labels of -100 do not count. A mean over something else says how much each label
                        counts in it, by a method or attribute `label_weights(labels)`, as `nn.CrossEntropyLoss` does:
                        shares, micro-batches and the evaluation are weighted by it
        batch_size      samples in a minibatch of all nodes together; for asynchronous strategies, samples per gradient
        batch_schedule  function from the epoch, counted from 0, to its batch size, for minibatches that grow;
                        `batch_size` then only sets the steps per epoch that `schedule` is given
        epochs          passes over the training set
        shards          the samples that a node reads:
                        "shuffled"  each epoch, one new shuffle is dealt to all nodes
                        "fixed"     the training set is shuffled once and cut into one shard per node; the node keeps
                                    its shard and shuffles it anew in every epoch
                        "by_label"  as "fixed", but sorted by label instead of shuffled: a node sees few of the classes
                        With the last two, the samples of a minibatch depend on the number of nodes
        seed            seed of the weights, the shuffles and dropout, at least 0
        clip_norm       largest 2-norm of the gradient of all parameters together, each counted once; a longer gradient
                        is scaled down to it before the optimizer gets it, as by `nn.clip_grad_norm_`; None: no clipping
        precision       "float32", "bfloat16" or "float16": the type to which model (by `Module.to`) and samples are
                        converted. In 16 bits, weights, gradients and activations take 2 bytes each, in memory and in
                        messages; sums of gradients are rounded to 16 bits, and optimizers keep float32 masters of the
                        weights. In float16 the loss is scaled by `amp.GradScaler`; a step with a gradient that is not
                        finite is skipped by all ranks.
                        None: the types that model and data have

    Raises
        TypeError, ValueError for a number or a choice that is not one of the above.

    Notes
        Which gradient is clipped depends on the strategy. Synchronous strategies: the mean over the whole minibatch,
        after the all-reduce, with the same result on all nodes. Nodes with weights of their own, and Hogwild: each
        node's gradient. Parameter server, where a server may hold only a slice: a worker's gradient of each minibatch,
        before it is pushed. Quorum: the mean of an update.

        The ranks receive the job by cloudpickle, so functions, lambdas and classes of a notebook or script work.

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
    precision: str | None = None

    def __post_init__(self) -> None:
        for name, at_least in {"batch_size": 1, "epochs": 1, "seed": 0}.items():
            object.__setattr__(self, name, whole_number(name, getattr(self, name), at_least))
        one_of("shards", self.shards, SHARDS)
        if self.precision is not None:
            one_of("precision", self.precision, PRECISIONS, hint="None leaves model and data in their own types")
        if not callable(self.data) and not isinstance(self.data, Splits):
            _refuse_data(self.data)
        if self.clip_norm is not None:
            real_number("clip_norm", self.clip_norm, above=0, hint="None switches clipping off")
        if (reduction := getattr(self.loss, "reduction", "mean")) in ("sum", "none"):
            raise ValueError(f'loss must be a mean, got reduction="{reduction}": use reduction="mean"')
        _ = self._batch_sizes  # raises for a size that cannot be

    @cached_property
    def _batch_sizes(self) -> tuple[int, ...]:
        """The batch size of each epoch; `batch_schedule` is called once per epoch, when the job is made."""
        if self.batch_schedule is None:
            return (self.batch_size,)
        sizes = enumerate(map(self.batch_schedule, range(self.epochs)))
        return tuple(whole_number(f"batch_schedule({epoch})", size, at_least=1) for epoch, size in sizes)

    def batch_size_of(self, epoch: int) -> int:
        """Samples per minibatch in that epoch, counted from 0; after the last epoch, as in the last."""
        return self._batch_sizes[min(epoch, len(self._batch_sizes) - 1)]

    @property
    def smallest_batch(self) -> int:
        """The batch size of the epoch that has the smallest minibatches."""
        return min(self._batch_sizes)

    @property
    def largest_batch(self) -> int:
        """The batch size of the epoch that has the largest minibatches."""
        return max(self._batch_sizes)

    def check_labels(self) -> None:
        """Raise ValueError for labels that do not go with the job's shards, or with its loss."""
        if self.shards != "by_label" and counts_of(self.loss) is not len:
            return
        y = self.build_data().train.y
        if self.shards == "by_label" and y.ndim != 1:
            raise ValueError(f'shards="by_label" needs one label a sample, but the targets have shape {y.shape}')
        check_padding(self.loss, y)

    def order(
        self, train: Dataset, nodes: int, batch_size: int, seed: int | None = None
    ) -> Callable[[int], NDArray[np.int64]]:
        """Return the function that maps an epoch to its sample order, for `nodes` nodes and this minibatch size.

        seed: the job's by default.
        """
        n, seed = len(train), self.seed if seed is None else seed
        if self.shards == "shuffled":
            return partial(epoch_order, n, True, seed)
        by_label = self.shards == "by_label"
        samples = np.argsort(train.y, kind="stable") if by_label else stream(Purpose.SHARDS, seed).permutation(n)
        return partial(order_of_shards, samples, nodes, batch_size, seed)

    def steps_after(self, samples: int, n: int) -> int:
        """Whole minibatches among the first `samples` samples of the run; n: the size of the training set.

        The last minibatch of an epoch may be smaller. Serial has made that many updates by then, and its schedule that
        many steps.
        """
        epochs, rest = divmod(samples, n)
        sizes = [self.batch_size_of(epoch) for epoch in range(epochs + 1)]
        return sum(ceil(n / size) for size in sizes[:-1]) + rest // sizes[-1]

    def build_data(self) -> Splits:
        """The training set and the test set. Raises TypeError if `data` makes something else."""
        made = self.data if isinstance(self.data, Splits) else self.data()
        if not isinstance(made, Splits):
            _refuse_data(made)
        for name, dataset in (("train", made.train), ("test", made.test)):
            if not isinstance(dataset, Dataset):
                raise TypeError(
                    f"the {name} set must be a data.Dataset, got {type(dataset).__name__}: stack its samples and its "
                    "targets, data.Dataset(x, y), or make its class a subclass of data.Dataset"
                )
        if self.precision is None:
            return made
        train, test = (in_type(dataset, np.dtype(self.precision)) for dataset in made)
        return replace(made, train=train, test=test)

    def build_model(self, seed: int | None = None) -> Module:
        """The model with its first weights: the same on every rank. The caller's generator keeps its state.

        seed: the job's by default; a given Module is copied as it is.
        """
        if isinstance(self.model, Module):
            return self._in_precision(copy.deepcopy(self.model))
        with random.using(stream(Purpose.WEIGHTS, self.seed if seed is None else seed)):
            return self._in_precision(self.model())

    def _in_precision(self, model: Module) -> Module:
        return model if self.precision is None else model.to(self.precision)

    def build_held(self, held: Callable[[Module], Any]) -> Module:
        """The model with only the arrays of `held(model)`, as by `nn.building`; those of `()` are none, only shapes.

        A given Module is copied as it is.
        """
        if isinstance(self.model, Module):
            return self.build_model()
        model = _with_own_layers(self.model)
        with building(held), random.using(stream(Purpose.WEIGHTS, self.seed)):
            return self._in_precision(model())

    def first_samples(self, count: int) -> Any:
        """That many samples of the training set, without their labels."""
        return minibatch(self.build_data().train, np.arange(count))[0]

    def each_stage(self) -> Iterator[tuple[Module, Stage]]:
        """Each of the model's stages, in a model that has the arrays of this one alone: the whole may not fit here."""

        def stage(number: int, model: Module) -> Stage:
            return model.stages()[number]

        for number in range(len(self.build_held(lambda model: ()).stages())):
            model = self.build_held(partial(stage, number)).train()
            yield model, stage(number, model)

    def build_optimizer(self, model: Module) -> optim.Optimizer:
        """The optimizer of all parameters of the model."""
        return self.optimizer(list(model.parameters()))

    def build_schedule(self, optimizer: optim.Optimizer, samples: int) -> Any:
        """The learning-rate schedule for a training set of `samples` samples, or None."""
        return None if self.schedule is None else self.schedule(optimizer, ceil(samples / self.batch_size))


def _refuse_data(data: Any) -> NoReturn:
    raise TypeError(
        f"data must be a data.Splits(train, test), or a function that makes one, got {type(data).__name__}: "
        "give data.Splits(data.Dataset(x, y), data.Dataset(x_test, y_test))"
    )


def _with_own_layers(model: Callable[[], Module]) -> Callable[[], Module]:
    """The same function, with copies of the layers that exist outside it, so that a run here does not change those."""
    import cloudpickle  # 3.4 ms, on each import of minidl.parallel

    copied: Callable[[], Module] = cloudpickle.loads(cloudpickle.dumps(model))
    return copied


def check_job(given: object) -> None:
    """Raise TypeError unless this is a Job."""
    if not isinstance(given, Job):
        raise TypeError(f"job must be a parallel.Job, got {given!r}: make one")


def built_once(job: Job) -> Job:
    """Return the same job, whose `build_...` methods keep what they build: called again, they return the same object.

    It is for one process: the checks before a run and the evaluation after it share data, model and optimizer. What
    they write into the model changes no layer that was made outside its function.
    """
    check_job(job)
    once = copy.copy(job)
    if not isinstance(job.model, Module):
        object.__setattr__(once, "model", _with_own_layers(job.model))
    for name in ("build_data", "build_model", "build_optimizer", "build_schedule"):
        vars(once)[name] = cache(getattr(once, name))
    return once
