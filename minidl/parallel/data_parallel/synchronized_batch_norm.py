"""Batch norm over the samples of all nodes: each node has only a share of the minibatch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from minidl import functional as F
from minidl import kernels
from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.cluster.comm import Communicator
from minidl.data.loader import Batch
from minidl.data.pairs import minibatch
from minidl.functional.bind import operand
from minidl.grad_mode import recomputing
from minidl.kernels import Array
from minidl.nn import Module, replace_layers
from minidl.nn.normalization import BatchNorm
from minidl.parallel.run.session import Session
from minidl.tensor import Tensor


class SynchronizedBatchNorm(BatchNorm):
    """Batch norm with the mean and variance of the samples of all nodes.

    Parameters
        layer      the BatchNorm1d or BatchNorm2d to replace; its parameters and buffers are kept
        comm       communicator of the nodes
        algorithm  all-reduce in backward, as in `comm.all_reduce`

    Forward and backward wait for all nodes, which must therefore make the same calls: a node without samples sets
    `counts` to False and calls with a sample that is left out of the statistics. In evaluation, a layer without running
    statistics normalises over the samples that it is given.
    """

    def __init__(self, layer: BatchNorm, comm: Communicator, algorithm: AllReduceAlgorithm = "auto") -> None:
        vars(self).update(vars(layer))  # the same parameters and buffers
        self.name, self.expected, self.dimensions = layer.name, layer.expected, layer.dimensions
        self.comm, self.algorithm, self.counts = comm, algorithm, True

    def forward(self, x: Any) -> Tensor:
        if not self.training:
            return super().forward(x)
        x = operand(x)
        self.check(x.shape)
        tracked = self.track_running_stats
        mean, var = (self.running_mean.data, self.running_var.data) if tracked else (None, None)
        momentum = self.average_factor() if tracked else 0.0
        reducer = StatisticsOfAllNodes(self.comm, self.algorithm, self.counts)
        out = F.batch_norm(x, mean, var, self.weight, self.bias, True, momentum, self.eps, reducer=reducer)
        if tracked and reducer.count and not recomputing.get():
            self.num_batches_tracked.data += 1
        return out


class StatisticsOfAllNodes:
    """Combines the statistics of the ranks of `comm`: the `reducer` of `functional.batch_norm`.

    Forward gathers every node's count, mean and variance, and combines them; backward all-reduces the two sums on which
    the gradients of mean and variance depend.

    Parameters
        algorithm   all-reduce of backward
        counts      whether this node's samples belong to the minibatch

    References
        Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing sample variances (1979)
        Ioffe and Szegedy, Batch Normalization (arXiv:1502.03167), section 3, for backward
    """

    def __init__(self, comm: Communicator, algorithm: AllReduceAlgorithm, counts: bool) -> None:
        self.comm, self.algorithm, self.counts = comm, algorithm, counts
        self.count = 0  # values per channel, of all nodes together

    def join(self, count: int, mean: Array, var: Array) -> tuple[int, Array, Array]:
        local = [np.full(len(mean), count if self.counts else 0), kernels.to_numpy(mean), kernels.to_numpy(var)]
        counts, means, variances = np.stack(self.comm.all_gather(np.stack(local).astype(np.float64)), axis=1)
        self.count = int(counts[:, 0].sum())
        total = max(counts[:, 0].sum(), 1)
        mean_of_all = (counts * means).sum(axis=0) / total
        var_of_all = (counts * (variances + (means - mean_of_all) ** 2)).sum(axis=0) / total
        module = kernels.array_module(mean)
        return self.count, module.asarray(mean_of_all, mean.dtype), module.asarray(var_of_all, mean.dtype)

    def total(self, sums: np.ndarray) -> np.ndarray:
        return self.comm.all_reduce(sums, algorithm=self.algorithm)


def synchronized(model: Module, comm: Communicator, algorithm: AllReduceAlgorithm = "auto") -> Module:
    """Replace the batch norms (1d, 2d) of the model by SynchronizedBatchNorm over the ranks of comm; return the model.

    The model is changed in place; its parameters and buffers are kept. algorithm: all-reduce in backward.
    """

    def rule(name: str, module: Module) -> Module | None:
        return SynchronizedBatchNorm(module, comm, algorithm) if isinstance(module, BatchNorm) else None

    return replace_layers(model, rule)


@contextmanager
def sample_that_does_not_count(session: Session, batch: Batch) -> Iterator[Batch]:
    """Give a node without samples one with which it makes the collective calls of the layers above; it weighs 0."""
    layers = [module for module in session.model.modules() if isinstance(module, SynchronizedBatchNorm)]
    for layer in layers:
        layer.counts = False
    x, y = minibatch(session.train, np.arange(1))
    yield replace(batch, x=x, y=y, counted=0.0)
    for layer in layers:
        layer.counts = True
