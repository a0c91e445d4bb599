"""Who reads which sample: one shuffle an epoch, the same on every rank, dealt like cards."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from minidl.data.checks import at_least, replica
from minidl.random import Purpose, stream


def epoch_order(n: int, shuffle: bool, seed: int, epoch: int) -> NDArray[np.int64]:
    """The order in which an epoch visits samples 0..n-1: one permutation for each (seed, epoch), whoever asks.

    >>> sorted(epoch_order(5, True, seed=0, epoch=3).tolist())
    [0, 1, 2, 3, 4]
    """
    if not shuffle:
        return np.arange(n, dtype=np.int64)
    return stream(Purpose.SHUFFLE, seed, epoch).permutation(n).astype(np.int64, copy=False)


class DistributedSampler:
    """The indices of `rank`'s share of n samples: every `num_replicas`-th of the epoch's order, without padding.

    Over all ranks each sample appears exactly once; shares differ by at most one. (PyTorch's sampler of this name
    repeats samples until the shares are equal, which makes the result depend on the number of ranks.) Call
    `set_epoch(e)` before each epoch for a fresh shuffle. `order(epoch)`, if given, says in what order that epoch visits
    the samples, in place of `shuffle`. Raises ValueError for a rank outside 0..num_replicas-1.

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
        self.n = at_least("n", n, 0)
        self.num_replicas, self.rank = replica(num_replicas, rank)
        self.shuffle = shuffle
        self.seed = at_least("seed", seed, 0)
        self.order = order
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose shuffle the next pass follows."""
        self.epoch = at_least("epoch", epoch, 0)

    def indices(self) -> NDArray[np.int64]:
        """This rank's samples of the epoch as one array."""
        if self.order is None:
            order = epoch_order(self.n, self.shuffle, self.seed, self.epoch)
        else:
            order = self.order(self.epoch)
        return order[self.rank :: self.num_replicas]

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices().tolist())

    def __len__(self) -> int:
        return len(range(self.rank, self.n, self.num_replicas))
