"""Minibatches: an epoch's shuffled samples cut into pieces, and each piece dealt to the ranks that share the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl.data.checks import at_least, replica
from minidl.data.pairs import Pairs, checked, minibatch
from minidl.data.sampler import DistributedSampler, epoch_order

_PYTORCH_ONLY = {
    "num_workers": "samples are read in the training process itself",
    "pin_memory": "there is no other device to copy to",
    "batch_sampler": "give order=, a function that maps an epoch to its sample order",
    "collate_fn": "give each pair its final form in the dataset's __getitem__",
    "generator": "give seed=, a whole number",
    "prefetch_factor": "samples are read in the training process itself",
    "persistent_workers": "samples are read in the training process itself",
    "worker_init_fn": "samples are read in the training process itself",
    "timeout": "samples are read in the training process itself",
}


@dataclass(frozen=True, slots=True)
class Batch:
    """A rank's part of a minibatch; unpacks as `x, y = batch`.

    `total` counts the samples of the whole minibatch over all ranks. Summed over ranks, the gradient of
    `batch.weight * mean_loss` is the gradient of the mean over the whole minibatch, however unequal the parts are.
    """

    x: NDArray[Any]
    y: NDArray[Any]
    total: int

    @property
    def weight(self) -> float:
        """This part's share of the minibatch, len(x) / total: 1 on a single rank, 0 for an empty part."""
        return len(self.x) / self.total

    def __iter__(self) -> Iterator[NDArray[Any]]:
        yield self.x
        yield self.y


class DataLoader:
    """Iterates over a dataset in minibatches of `batch_size` samples, the last one smaller where it does not divide.

    dataset: a `Dataset`, a list of (sample, target) pairs, or any object with `__len__` and `__getitem__` that gives
    such a pair for a number; pairs are stacked, and Python's own numbers become float32 or int64.

    With `shuffle`, every pass has its own order, a function of (`seed`, epoch): the first pass, the first `iter()` of
    the loader, is epoch 0, and each further one, finished or not, is the next epoch. `set_epoch(e)` makes the next pass
    epoch e, as a resumed run needs it. `order(epoch)`, if given, says in what order an epoch visits the samples.

    For synchronous data parallelism give each rank its `rank` and `num_replicas`:
    `batch_size` is then that of the whole minibatch, of which rank r gets samples r, r + num_replicas, ... Parts differ
    by at most one sample, nothing is repeated, and all ranks make the same number of steps; in the ragged last
    minibatch a part may be empty (`drop_last` leaves it out).

    Alternatively `sampler` says which samples this rank reads, and `batch_size` counts its own samples only: this is
    how asynchronous workers read. It takes the place of `shuffle`, `order`, `rank` and `num_replicas`. Only
    `set_epoch`, the loader's or the sampler's own, changes its epoch, as in PyTorch.

    Raises ValueError where `batch_size` is below `num_replicas` (a rank would never see a sample), TypeError for a
    dataset without pairs, and for options that only PyTorch has.

    >>> import numpy as np
    >>> from minidl.data import Dataset
    >>> loader = DataLoader(Dataset(np.arange(5.0), np.arange(5)), batch_size=4, rank=1, num_replicas=2)
    >>> [y.tolist() for x, y in loader]
    [[1, 3], []]
    >>> [batch.total for batch in loader]
    [4, 1]
    """

    def __init__(
        self,
        dataset: Pairs,
        batch_size: int,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        rank: int = 0,
        num_replicas: int = 1,
        sampler: DistributedSampler | None = None,
        order: Callable[[int], NDArray[np.int64]] | None = None,
        **options: object,
    ) -> None:
        for name in options:
            reason = _PYTORCH_ONLY.get(name, "see help(DataLoader) for its options")
            raise TypeError(f"a DataLoader has no {name}: leave it out ({reason})")
        self.dataset = checked(dataset)
        self.batch_size = at_least("batch_size", batch_size, 1)
        self.shuffle = shuffle
        self.seed = at_least("seed", seed, 0)
        self.drop_last = drop_last
        self.num_replicas, self.rank = replica(num_replicas, rank)
        self.sampler = sampler
        self.order = order
        self.epoch = 0
        if sampler is not None and (shuffle or order is not None or self.num_replicas > 1):
            raise ValueError("a sampler shuffles and shards by itself: leave out shuffle, order, rank and num_replicas")
        if shuffle and order is not None:
            raise ValueError("an order is given: leave out shuffle")
        if sampler is not None and not (hasattr(sampler, "indices") and hasattr(sampler, "n")):
            raise TypeError(
                f"sampler is a DistributedSampler, not {type(sampler).__name__}: order=, a function that maps an epoch "
                "to its sample order, says which samples are read"
            )
        if sampler is not None and sampler.n != len(dataset):
            raise ValueError(f"the sampler is for {sampler.n} samples, but the dataset has {len(dataset)}")
        if self.batch_size < self.num_replicas:
            raise ValueError(
                f"a minibatch of {self.batch_size} cannot be shared by {self.num_replicas} ranks: "
                f"batch_size must be at least {self.num_replicas}"
            )

    def set_epoch(self, epoch: int) -> None:
        """Make the next pass epoch `epoch`; the passes after it are the epochs after it."""
        self.epoch = at_least("epoch", epoch, 0)
        if self.sampler is not None:
            self.sampler.set_epoch(self.epoch)

    def __len__(self) -> int:
        """Minibatches an epoch, the same on every rank."""
        n = len(self.dataset) if self.sampler is None else len(self.sampler)
        full, ragged = divmod(n, self.batch_size)
        return full + (ragged > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[Batch]:
        if self.sampler is not None:
            order = self.sampler.indices()
        elif self.order is not None:
            order = self.order(self.epoch)
        else:
            order = epoch_order(len(self.dataset), self.shuffle, self.seed, self.epoch)
        if self.sampler is None:
            self.epoch += 1  # here rather than at the pass's end, so that two passes at once differ as well
        return self._batches(order)

    def _batches(self, order: NDArray[np.int64]) -> Iterator[Batch]:
        for i in range(len(self)):
            common = order[i * self.batch_size : (i + 1) * self.batch_size]
            x, y = minibatch(self.dataset, common[self.rank :: self.num_replicas], common)
            yield Batch(x, y, total=len(common))
