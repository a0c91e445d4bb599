"""Batch norm over the whole minibatch, although every node has only a part of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl import kernels
from minidl.cluster.comm import Communicator
from minidl.functional.bind import operand
from minidl.functional.normalization import refuse_one_value
from minidl.functional.one_type import converted
from minidl.kernels import Array
from minidl.kernels.sixteen_bit import is_sixteen_bit
from minidl.nn import Module
from minidl.nn.normalization import BatchNorm
from minidl.parallel.run.session import Session
from minidl.tensor import Tensor, record


class SynchronizedBatchNorm(BatchNorm):
    """Batch norm with the mean and variance of all nodes' parts together; `layer` is the BatchNorm1d or 2d it replaces.

    Forward gathers every node's count, mean and sum of squared deviations, and joins them; backward adds up over the
    nodes the two sums that mean and variance depend on. Both wait for all nodes, which thus must make the same calls: a
    node without samples sets `counts` to False and takes part with a sample that does not count. In evaluation a layer
    without running statistics normalises over the samples that it is given.

    Source: Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing sample variances (1979),
    for the joining; Ioffe and Szegedy, Batch Normalization (arXiv:1502.03167), section 3, for backward.
    """

    def __init__(self, layer: BatchNorm, comm: Communicator, algorithm: str = "auto") -> None:
        vars(self).update(vars(layer))  # the same parameters and buffers
        self.name, self.expected, self.dimensions = layer.name, layer.expected, layer.dimensions
        self.comm, self.algorithm, self.counts = comm, algorithm, True

    def forward(self, x: Any) -> Tensor:
        x = operand(x)
        self.check(x.shape)
        if not self.training:
            return super().forward(x)
        if is_sixteen_bit(x.dtype):  # statistics and sums in float32, as the kernels of batch norm take them
            return converted(self.forward(converted(x, np.dtype(np.float32))), x.dtype)
        kernel, image, counts = kernels.current(), x.data, self.counts
        count, mean, var = self._statistics(image)
        if count == 1:
            refuse_one_value(self.name, x.shape)
        if count and self.track_running_stats:
            momentum = self.average_factor()
            self.running_mean.data += momentum * (mean - self.running_mean.data)
            self.running_var.data += momentum * (var * (count / (count - 1)) - self.running_var.data)
            self.num_batches_tracked.data += 1
        scale: Tensor = Tensor(mean * 0 + 1) if self.weight is None else self.weight
        shift: Tensor = Tensor(mean * 0) if self.bias is None else self.bias
        weight = scale.data
        out, normalized, inverse_std = kernel.batch_norm(image, mean, var, weight, shift.data, self.eps)
        axes, shape = (0, *range(2, image.ndim)), (-1,) + (1,) * (image.ndim - 2)

        def vjp(g: Array, needs: Any) -> tuple[Array, ...]:
            add = kernels.uncounted("sum")
            g_bias, g_weight = add(g, axes), add(g * normalized, axes)
            local = np.stack([kernels.to_numpy(g_bias), kernels.to_numpy(g_weight)])
            sums = self.comm.all_reduce(local, algorithm=self.algorithm)
            mean_g, mean_gx = kernels.array_module(g).asarray(sums / max(count, 1)).reshape(2, *shape)
            centred = g - mean_g - normalized * mean_gx if counts else g
            return centred * (weight * inverse_std).reshape(shape), g_weight, g_bias

        return record(out, (x, scale, shift), vjp, saved=(1,))

    def _statistics(self, image: Array) -> tuple[int, Array, Array]:
        """How many values a channel has on all nodes together, their mean and their (biased) variance."""
        count = image.size // self.num_features if self.counts else 0
        local = [kernels.to_numpy(array) for array in kernels.current().channel_statistics(image)]
        sent = np.stack([np.full(self.num_features, count), *local]).astype(np.float64)
        counts, means, variances = np.stack(self.comm.all_gather(sent), axis=1)
        total = max(counts[:, 0].sum(), 1)
        mean = (counts * means).sum(axis=0) / total
        var = (counts * (variances + (means - mean) ** 2)).sum(axis=0) / total
        module = kernels.array_module(image)
        return int(counts[:, 0].sum()), module.asarray(mean, image.dtype), module.asarray(var, image.dtype)


def synchronized(model: Module, comm: Communicator, algorithm: str = "auto") -> Module:
    """The model with its batch norms (1d, 2d) synchronised over the ranks of comm; parameters and buffers stay.

    algorithm: of the all-reduce in backward.
    """
    done: dict[Module, Module] = {}

    def replaced(module: Module) -> Module:
        if module not in done:
            done[module] = module
            if isinstance(module, BatchNorm):
                done[module] = SynchronizedBatchNorm(module, comm, algorithm)
            for name, child in list(vars(module).items()):
                if isinstance(child, Module):
                    setattr(module, name, replaced(child))
        return done[module]

    return replaced(model)


def backward_without_samples(session: Session) -> None:
    """Take part in what the layers above do together, with a sample that counts nothing: all gradients are 0."""
    layers = [module for module in session.model.modules() if isinstance(module, SynchronizedBatchNorm)]
    for layer in layers:
        layer.counts = False
    x, y = session.train[np.array([0])]
    (session.job.loss(session.model(x), y) * 0.0).backward()
    for layer in layers:
        layer.counts = True
