"""Compressed gradients: each parameter has a compressor of its own, and a bucket of parameters one message exchange.

A compressor remembers things that belong to one parameter (what it has not sent yet, say). A message costs a start-up
time whatever its size. Hence each gradient is compressed by itself, and what its compressor sends travels together with
that of the other parameters in its bucket, as soon as backward has completed them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from minidl import kernels
from minidl.cluster.comm import Communicator
from minidl.compress import Compressor, exchange
from minidl.compress.exchange import Sum
from minidl.parallel.backward_order import InBackwardOrder
from minidl.parallel.buckets import fill
from minidl.parallel.job import Job
from minidl.parallel.vector import gradient
from minidl.tensor import Tensor


class CompressedGradients:
    """Adds up the compressed gradients of `parameters` over the ranks, bucket by bucket, the last parameters first.

    Used as `GradientBuckets`.

    Parameters
        compressor  copied for every parameter
        overlap     whether buckets are sent while backward goes on. Compressors that add up in a ring or on the way
                    (QuantizedAllReduce, sparse all-reduces) send after backward in any case, and those that must know
                    the norm of the whole gradient begin then
        bucket_mb   size of a bucket of gradients, before compression, in megabytes (1 MB = 1e6 bytes)
        algorithm   of compressors that all-reduce, as in `comm.all_reduce`
        names       the parameters' names in the model, from which compressors derive their random numbers; by default
                    their numbers
        seed        of the run

    Notes
        A parameter without a gradient counts as zero where others have one. It stays without where no rank has one and
        none sends anything either, such as what error feedback has kept of earlier gradients: a byte a parameter, sent
        after the gradients, says who has one. Frozen parameters take no part.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        comm: Communicator,
        compressor: Compressor,
        overlap: bool = True,
        bucket_mb: float = 1.0,
        algorithm: str = "auto",
        names: Sequence[str] | None = None,
        seed: int = 0,
    ) -> None:
        self.comm, self.overlap, self.algorithm = comm, overlap, algorithm
        self._label = type(compressor).__name__
        name_of = dict(zip(parameters, names or map(str, range(len(parameters))), strict=True))
        self.buckets = fill([parameter for parameter in parameters if parameter.requires_grad], bucket_mb * 1e6)
        self.parameters = list(chain.from_iterable(self.buckets))
        self.compressors = [copy.deepcopy(compressor) for _ in self.parameters]
        for parameter, own in zip(self.parameters, self.compressors, strict=True):
            own.begin_run(seed, name_of[parameter], comm.rank)
        self._compressor_of = dict(zip(self.parameters, self.compressors, strict=True))
        self._order = InBackwardOrder(self.buckets, self._send)
        self._used: list[bool] = []  # has this rank a gradient, for the parameters so far
        self._waiting: list[Callable[[], list[Sum]]] = []  # for the sums of each bucket
        self._norm: float | None = None  # of this step's gradient, once it has been asked for

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
        self._order.rest()
        sums = [one.total for wait in self._waiting for one in wait()]
        users = self.comm.all_reduce(np.array(self._used, np.uint8), op="max", algorithm=self.algorithm)
        for parameter, total, is_used in zip(self.parameters, sums, users, strict=True):
            if is_used or (self.compressors[0].keeps_errors and total.any()):  # what arrives late counts all the same
                parameter.grad = kernels.array_module(parameter.data).asarray(total)
            else:
                parameter.grad = None
        self._used, self._waiting, self._norm = [], [], None

    def _gradient_norm(self) -> float:
        """The 2-norm of this rank's gradient of all parameters; called after backward."""
        if self._norm is None:
            self._norm = float(np.linalg.norm(gradient(self.parameters)))
        return self._norm

    def _send(self, i: int) -> None:
        adding_up = []
        for parameter in self.buckets[i]:
            self._used.append(parameter.grad is not None)
            local = gradient([parameter]).reshape(parameter.shape)
            adding_up.append(self._compressor_of[parameter].add_up(local, self.comm.size, self.comm.rank))
        label = f"{self._label} {i}"  # begun from different lines, it is still the same call on all ranks
        wait = exchange.begin(adding_up, self.comm, self.algorithm, self.overlap, label, self._gradient_norm)
        if not self.overlap:
            sums = wait()
            self._waiting.append(lambda: sums)
        else:
            self._waiting.append(wait)


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
