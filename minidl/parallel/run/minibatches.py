"""Minibatches: which samples a node reads in an epoch: its part of common minibatches, or minibatches of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from minidl.data import DataLoader, DistributedSampler

if TYPE_CHECKING:
    from minidl.parallel.run.session import Session


def common_minibatches(session: Session) -> DataLoader:
    """This rank's part of every minibatch of the present epoch; the minibatches are common to all nodes."""
    batch_size = session.job.batch_size_of(session.epoch)
    order = session.job.order(session.train, session.nodes, batch_size)
    return DataLoader(session.train, batch_size, order=order, rank=session.comm.rank, num_replicas=session.nodes)


def own_minibatches(session: Session, seed: int | None = None) -> DataLoader:
    """This rank's own minibatches of its own shard; with a seed, of the whole training set as Serial shuffles it."""
    job, nodes, rank, samples = session.job, session.nodes, session.comm.rank, len(session.train)
    if seed is not None:
        job, nodes, rank = replace(job, seed=seed), 1, 0
    sampler = DistributedSampler(samples, nodes, rank, order=job.order(session.train, nodes, max(samples, 1)))
    epoch = min(session.epoch, job.epochs - 1)  # of a stream, a fast node makes more passes than there are epochs
    return DataLoader(session.train, job.batch_size_of(epoch), sampler=sampler)
