"""DataLoader: the minibatches of each epoch, shuffled and divided among ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from minidl.arguments import whole_number
from minidl.data.pairs import Pairs, checked, minibatch, targets
from minidl.data.read_ahead import read_ahead
from minidl.data.sample_cache import SampleCache
from minidl.data.sampler import DistributedSampler, epoch_order, given_order

_PYTORCH_ONLY = {  # accepted if switched off, as num_workers=0 is
    "num_workers": "samples are read in the training process itself; lookahead= reads ahead in a thread of it",
    "pin_memory": "there is no other device to copy to",
    "batch_sampler": "give order=, a function that maps an epoch to its sample order",
    "collate_fn": "give each pair its final form in the dataset's __getitem__",
    "generator": "give seed=, a whole number",
    "prefetch_factor": "give lookahead=, the number of minibatches to read ahead",
    "persistent_workers": "samples are read in the training process itself",
    "worker_init_fn": "samples are read in the training process itself",
    "timeout": "samples are read in the training process itself",
}

Counts = Callable[[NDArray[Any]], float]


@dataclass(frozen=True, slots=True)
class Batch:
    """One rank's samples of a minibatch; unpacks as `x, y = batch`.

    Attributes
        x, y              samples and targets of this rank
        total             samples of the whole minibatch, on all ranks
        counts            function that says how much given targets count in the mean loss
        counted           what those of this rank count
        counted_of_all    what those of the whole minibatch count

    Summed over ranks, the gradient of `batch.weight * mean_loss` is the gradient of the mean loss over the whole
    minibatch, even if ranks have different numbers of samples, or of samples that count.
    """

    x: NDArray[Any]
    y: NDArray[Any]
    total: int
    counts: Counts
    counted: float
    counted_of_all: float

    @property
    def weight(self) -> float:
        """This rank's share of what counts in the minibatch: 1 on a single rank, 0 where none of its targets counts."""
        return self.counted / self.counted_of_all if self.counted else 0.0

    def share(self, samples: slice) -> Batch:
        """Some samples of this rank, as a share of the same minibatch."""
        y = self.y[samples]
        return replace(self, x=self.x[samples], y=y, counted=self.counts(y))

    def __iter__(self) -> Iterator[NDArray[Any]]:
        yield self.x
        yield self.y


class DataLoader:
    """Iterate over a dataset in minibatches.

    Parameters
        dataset         a `Dataset`, a list of (sample, target) pairs, or an object with `__len__` whose
                        `__getitem__(i)` returns such a pair; pairs are stacked, and Python's numbers become float32 or
                        int64
        batch_size      samples per minibatch, over all ranks; the last minibatch of an epoch may be smaller
        shuffle         visit the samples of each epoch in a new order, a function of (seed, epoch)
        seed            seed of the shuffle
        drop_last       drop a last minibatch of fewer than batch_size samples
        rank            this rank, 0 to num_replicas - 1
        num_replicas    ranks that share each minibatch: rank r gets samples r, r + num_replicas, ... of it
        sampler         a DistributedSampler that selects the samples of this rank, instead of shuffle, order, rank and
                        num_replicas; batch_size then counts this rank's samples only, as asynchronous workers need it
        order           function from an epoch to its sample order, instead of shuffle
        counts          how much given targets count in a mean loss, for `Batch.weight`; default: each counts one
        lookahead       minibatches that a thread reads in advance, while the program computes; default 0: each one is
                        read when it is asked for
        options         PyTorch's other options, such as num_workers, which must be switched off: 0, False or None

    The first `iter()` of the loader is epoch 0, and each further one, finished or not, is the next epoch; resumed runs
    call `set_epoch`. With a sampler only `set_epoch`, the loader's or the sampler's, changes the epoch, as in PyTorch.

    The ranks' shares of a minibatch differ by at most one sample, no sample is repeated, and all ranks make the same
    number of steps. In a last minibatch of fewer samples than ranks some shares are empty.

    Reading ahead keeps samples and order, for the seed decides them; `lookahead` more minibatches are in memory. The
    first minibatch of each pass is still waited for. The dataset's `__getitem__` runs in the thread, so its random
    numbers must come from a generator that the program does not use. `SampleCache` keeps samples from epoch to epoch.

    Raises
        ValueError    batch_size below num_replicas: one rank would never get a sample
        TypeError     a dataset without pairs; an option that only PyTorch has and that is not switched off

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
        batch_size: int = 1,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        rank: int = 0,
        num_replicas: int = 1,
        sampler: DistributedSampler | None = None,
        order: Callable[[int], NDArray[np.int64]] | None = None,
        counts: Counts = len,
        lookahead: int = 0,
        **options: object,
    ) -> None:
        for name, value in options.items():
            if name in _PYTORCH_ONLY and not value:
                continue
            reason = _PYTORCH_ONLY.get(name, "see help(DataLoader) for its options")
            raise TypeError(f"a DataLoader has no {name}: leave it out ({reason})")
        self.dataset = checked(dataset)
        self.batch_size = whole_number("batch_size", batch_size, at_least=1)
        self.shuffle = shuffle
        self.seed = whole_number("seed", seed, at_least=0)
        self.drop_last = drop_last
        self.num_replicas = whole_number("num_replicas", num_replicas, at_least=1)
        self.rank = whole_number("rank", rank, 0, self.num_replicas - 1, hint="ranks are 0 to num_replicas - 1")
        self.sampler = sampler
        self.order = order
        self.counts = counts
        self.lookahead = whole_number("lookahead", lookahead, at_least=0, hint="0 reads nothing ahead")
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
        """Make the next pass epoch `epoch`; each later pass is the next epoch."""
        self.epoch = whole_number("epoch", epoch, at_least=0)
        if self.sampler is not None:
            self.sampler.set_epoch(self.epoch)

    def __len__(self) -> int:
        """Number of minibatches per epoch, the same on every rank."""
        n = len(self.dataset) if self.sampler is None else len(self.sampler)
        full, ragged = divmod(n, self.batch_size)
        return full + (ragged > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[Batch]:
        order = self._order(0)
        if isinstance(self.dataset, SampleCache):
            ranks = self.num_replicas if self.sampler is None else self.sampler.num_replicas
            later = (self._order(epochs) for epochs in range(1, ranks + 1))  # in one a sample returns, on average
            self.dataset.foresee(np.concatenate([self._uses(each) for each in (order, *later)]))
        if self.sampler is None:
            self.epoch += 1  # not at the pass's end, so that two concurrent passes differ too
        starts = range(0, len(self) * self.batch_size, self.batch_size)
        reads = (partial(self._read, order[start : start + self.batch_size]) for start in starts)
        return read_ahead(reads, self.lookahead) if self.lookahead else (read() for read in reads)

    def _order(self, later: int) -> NDArray[np.int64]:
        """The sample order of the next pass, or of the pass that is `later` epochs after it."""
        if self.sampler is not None:
            sampler = self.sampler
            if later:
                sampler = copy(sampler)
                sampler.set_epoch(sampler.epoch + later)
            return sampler.indices()
        if self.order is not None:
            return given_order(self.order, self.epoch + later, len(self.dataset))
        return epoch_order(len(self.dataset), self.shuffle, self.seed, self.epoch + later)

    def _uses(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """The samples of that order that this rank reads."""
        read = order[: len(self) * self.batch_size]
        return read[np.arange(len(read)) % self.batch_size % self.num_replicas == self.rank]

    def _read(self, common: NDArray[np.int64]) -> Batch:
        x, y = minibatch(self.dataset, common[self.rank :: self.num_replicas], common)
        counted = of_all = self.counts(y)
        if self.num_replicas > 1:
            of_all = len(common) if self.counts is len else self.counts(targets(self.dataset, common))
        return Batch(x, y, len(common), self.counts, counted, of_all)
