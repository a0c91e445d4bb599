"""Minibatches: the samples that a replica reads in an epoch, as its share of common minibatches or as its own ones."""

from __future__ import annotations

from minidl.data import DataLoader, Dataset, DistributedSampler
from minidl.data.loader import Batch
from minidl.parallel.job import Job
from minidl.parallel.mean_loss import counts_of


def common_minibatches(job: Job, train: Dataset, replicas: int, replica: int, epoch: int) -> DataLoader:
    """That replica's share of every minibatch of that epoch; all replicas together read the minibatch."""
    batch_size = job.batch_size_of(epoch)
    order = job.order(train, replicas, batch_size)
    return DataLoader(train, batch_size, order=order, rank=replica, num_replicas=replicas, counts=counts_of(job.loss))


def own_minibatches(
    job: Job, train: Dataset, replicas: int, replica: int, epoch: int, seed: int | None = None
) -> DataLoader:
    """That replica's own minibatches of its own shard; with a seed, of the whole training set as Serial shuffles it.

    epoch: number of this replica's pass; a fast replica makes more passes than the job has epochs.
    """
    if seed is not None:
        replicas, replica = 1, 0
    order = job.order(train, replicas, max(len(train), 1), seed)
    sampler = DistributedSampler(len(train), replicas, replica, order=order)
    return DataLoader(train, job.batch_size_of(epoch), sampler=sampler, counts=counts_of(job.loss))


def micro_batches(batch: Batch, count: int) -> list[Batch]:
    """The batch as `count` micro-batches, whose sizes differ by at most one; empty ones come first.

    Their weighted losses, and so their gradients, add up to those of the batch.
    """
    return [batch.share(slice(i, None, count)) for i in reversed(range(count))]
