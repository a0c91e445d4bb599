"""Minibatches: the samples that a node reads in an epoch, as its share of common minibatches or as its own ones."""

from __future__ import annotations

from minidl.data import DataLoader, Dataset, DistributedSampler
from minidl.parallel.job import Job


def common_minibatches(job: Job, train: Dataset, nodes: int, rank: int, epoch: int) -> DataLoader:
    """Node `rank`'s share of every minibatch of that epoch; all nodes together read the minibatch."""
    batch_size = job.batch_size_of(epoch)
    order = job.order(train, nodes, batch_size)
    return DataLoader(train, batch_size, order=order, rank=rank, num_replicas=nodes)


def own_minibatches(job: Job, train: Dataset, nodes: int, rank: int, epoch: int, seed: int | None = None) -> DataLoader:
    """Node `rank`'s own minibatches of its own shard; with a seed, of the whole training set as Serial shuffles it.

    epoch: counts the passes of this node, of which a fast node makes more than the job has epochs.
    """
    if seed is not None:
        nodes, rank = 1, 0
    order = job.order(train, nodes, max(len(train), 1), seed)
    return DataLoader(train, job.batch_size_of(epoch), sampler=DistributedSampler(len(train), nodes, rank, order=order))
