"""Shards that stay: every rank keeps its own part of the samples, and shuffles within it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from minidl.random import Purpose, stream


def order_of_shards(
    samples: NDArray[np.int64], num_replicas: int, batch_size: int, seed: int, epoch: int
) -> NDArray[np.int64]:
    """The order of an epoch that deals every rank samples of its own shard, freshly shuffled, and no others.

    samples: all of them, in the order in which they are cut into one contiguous shard a rank. batch_size: minibatches
    are dealt as `DataLoader` does it, place i of each to rank i mod `num_replicas`; a shard has as many samples as its
    rank has places in the epoch. Where `num_replicas` divides `batch_size` these are every `num_replicas`-th place, as
    `DistributedSampler` counts.

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
