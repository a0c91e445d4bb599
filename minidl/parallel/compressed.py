"""Compressed gradients: what a compressor makes of each gradient is added up, each as soon as backward is done with it.

A compressor remembers things that belong to one parameter (what it has not sent yet, say), so there are no buckets:
every parameter has a compressor of its own, and messages of its own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np

from minidl import kernels
from minidl.cluster.comm import Communicator
from minidl.compress import Compressor
from minidl.kernels import Array
from minidl.parallel.backward_order import InBackwardOrder
from minidl.parallel.job import Job
from minidl.parallel.vector import gradient
from minidl.tensor import Tensor


class CompressedGradients:
    """Adds up the compressed gradients of `parameters` over the ranks, a parameter at a time, the last ones first.

    Used as `GradientBuckets`. A parameter without a gradient counts as zero where others have one, and stays without
    where no rank has one and none sends anything either, such as what error feedback has kept of earlier gradients: a
    byte a parameter, sent after the gradients, says who has. Frozen parameters take no part. With a compressor that
    must know the norm of the whole gradient, everything is sent after backward.
    """

    def __init__(
        self, parameters: Sequence[Tensor], comm: Communicator, compressor: Compressor, overlap: bool = True
    ) -> None:
        self.comm, self.overlap = comm, overlap and not compressor.needs_norm
        self.parameters = [parameter for parameter in reversed(parameters) if parameter.requires_grad]
        self.compressors = [copy.deepcopy(compressor) for _ in self.parameters]
        self._order = InBackwardOrder([[parameter] for parameter in self.parameters], self._send)
        self._used: list[bool] = []  # has this rank a gradient, for the parameters so far
        self._sums: list[Callable[[], Array]] = []

    def begin_epoch(self, epoch: int) -> None:
        """Epoch number `epoch`, from 0, begins."""
        for compressor in self.compressors:
            compressor.begin_epoch(epoch)

    def begin(self) -> None:
        """The next backward completes the gradients."""
        if self.overlap:
            self._order.watch()

    def finish(self) -> None:
        """Every parameter gets the sum, over the ranks, of what their messages stand for."""
        if self.compressors and self.compressors[0].needs_norm:
            norm = float(np.linalg.norm(gradient(self.parameters)))
            for compressor in self.compressors:
                compressor.begin_step(norm, self.comm.size)
        self._order.rest()
        sums = [total() for total in self._sums]
        users = self.comm.all_reduce(np.array(self._used, np.uint8), op="max")
        for parameter, total, is_used in zip(self.parameters, sums, users, strict=True):
            if is_used or (self.compressors[0].keeps_errors and total.any()):  # what arrives late counts all the same
                parameter.grad = kernels.array_module(parameter.data).asarray(total)
            else:
                parameter.grad = None
        self._used, self._sums = [], []

    def _send(self, i: int) -> None:
        parameter = self.parameters[i]
        self._used.append(parameter.grad is not None)
        local = gradient([parameter]).reshape(parameter.shape)
        total = self.compressors[i].begin_all_reduce(local, self.comm)
        if self.overlap:
            self._sums.append(total)
        else:
            result = total()
            self._sums.append(lambda: result)


def check(compressor: Compressor, job: Job) -> None:
    """Raise ValueError if this compressor cannot be used for a model, or with an optimizer, such as this job's."""
    model = job.build_model()
    name = type(compressor).__name__
    try:
        compressor.check_optimizer(job.optimizer(list(model.parameters())))
    except ValueError as error:
        raise ValueError(f"{name} does not fit the optimizer: {error}") from error
    for parameter_name, parameter in model.named_parameters():
        try:
            if parameter.requires_grad:
                compressor.check(parameter.shape, parameter.dtype)
        except ValueError as error:
            raise ValueError(f"{name} does not fit the parameter {parameter_name}: {error}") from error
