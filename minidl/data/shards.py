"""Fixed shards: every rank keeps the same samples in all epochs and shuffles within them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from minidl.random import Purpose, stream


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
