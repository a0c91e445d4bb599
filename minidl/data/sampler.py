"""Which samples each rank reads: every rank computes the same shuffle of an epoch, or shuffles a fixed shard."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from minidl.arguments import whole_number
from minidl.random import Purpose, stream


def epoch_order(n: int, shuffle: bool, seed: int, epoch: int) -> NDArray[np.int64]:
    """Return the order in which an epoch visits samples 0..n-1, a function of (seed, epoch) alone.

    >>> sorted(epoch_order(5, True, seed=0, epoch=3).tolist())
    [0, 1, 2, 3, 4]
    """
    if not shuffle:
        return np.arange(n, dtype=np.int64)
    return stream(Purpose.SHUFFLE, seed, epoch).permutation(n).astype(np.int64, copy=False)


def given_order(order: Callable[[int], NDArray[np.int64]], epoch: int, n: int) -> NDArray[np.int64]:
    """Return `order(epoch)`; ValueError unless it has n indices, one for each place in the epoch."""
    indices = np.asarray(order(epoch))
    if indices.shape != (n,):
        raise ValueError(
            f"order({epoch}) has the shape {indices.shape}, but the dataset has {n} samples: return {n} indices, and "
            "for an epoch of fewer or more samples make the dataset of those, data.Dataset(x[indices], y[indices])"
        )
    return indices


class DistributedSampler:
    """Indices of the samples of one rank: every `num_replicas`-th of the epoch's order, without padding.

    Parameters
        n               number of samples
        num_replicas    number of ranks
        rank            this rank, 0 to num_replicas - 1
        shuffle         visit the samples of each epoch in a new order, a function of (seed, epoch)
        seed            seed of the shuffle
        order           function from an epoch to its sample order, instead of shuffle

    Call `set_epoch(e)` before each epoch for a new shuffle. Over all ranks each sample occurs exactly once, and shares
    differ by at most one sample. PyTorch's sampler repeats samples until the shares are equal, so that its result
    depends on the number of ranks.

    >>> [list(DistributedSampler(5, 2, rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3]]
    """

    def __init__(
        self,
        n: int,
        num_replicas: int,
        rank: int,
        shuffle: bool = True,
        seed: int = 0,
        order: Callable[[int], NDArray[np.int64]] | None = None,
    ) -> None:
        self.n = whole_number("n", n, at_least=0)
        self.num_replicas = whole_number("num_replicas", num_replicas, at_least=1)
        self.rank = whole_number("rank", rank, 0, self.num_replicas - 1, hint="ranks are 0 to num_replicas - 1")
        self.shuffle = shuffle
        self.seed = whole_number("seed", seed, at_least=0)
        self.order = order
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next pass."""
        self.epoch = whole_number("epoch", epoch, at_least=0)

    def indices(self) -> NDArray[np.int64]:
        """Return the indices of this rank's samples of the epoch, as one array."""
        if self.order is None:
            order = epoch_order(self.n, self.shuffle, self.seed, self.epoch)
        else:
            order = given_order(self.order, self.epoch, self.n)
        return order[self.rank :: self.num_replicas]

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices().tolist())

    def __len__(self) -> int:
        return len(range(self.rank, self.n, self.num_replicas))


def order_of_shards(
    samples: NDArray[np.int64], num_replicas: int, batch_size: int, seed: int, epoch: int
) -> NDArray[np.int64]:
    """Return the sample order of an epoch in which every rank reads its own shard, newly shuffled.

    Parameters
        samples         all samples; each rank's shard is a contiguous range of them
        num_replicas    number of ranks
        batch_size      samples per minibatch: `DataLoader` gives place i of each to rank i mod num_replicas
        seed, epoch     decide the shuffle

    A shard has as many samples as its rank has places in the epoch. If num_replicas divides batch_size these are every
    num_replicas-th place, as in `DistributedSampler`.

    >>> order = order_of_shards(np.arange(6), num_replicas=2, batch_size=4, seed=0, epoch=0)
    >>> sorted(order[0::2].tolist()), sorted(order[1::2].tolist())
    ([0, 1, 2], [3, 4, 5])
    """
    rank_of_place = np.arange(len(samples)) % batch_size % num_replicas
    sizes = np.bincount(rank_of_place, minlength=num_replicas)
    order = np.empty(len(samples), dtype=np.int64)
    for rank, shard in enumerate(np.split(samples, np.cumsum(sizes)[:-1])):
        order[rank_of_place == rank] = stream(Purpose.SHARD_SHUFFLE, seed, epoch, rank).permutation(shard)
    return order
