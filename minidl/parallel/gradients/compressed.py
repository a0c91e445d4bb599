"""Compressed gradients: one compressor per parameter, one exchange of messages per bucket of parameters.

The state of a compressor, such as a residual, belongs to one parameter, so each gradient is compressed by itself. Every
message costs a start-up time, so the messages of a bucket travel together, as soon as backward has completed its
gradients.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from minidl import kernels
from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.cluster.comm import Communicator
from minidl.compress import Compressor, exchange
from minidl.compress.exchange import Sum
from minidl.parallel.gradients.backward_order import InBackwardOrder
from minidl.parallel.gradients.buckets import fill
from minidl.parallel.gradients.flat_vector import gradient, norm
from minidl.parallel.job import Job
from minidl.tensor import Tensor


class CompressedGradients:
    """Adds up the compressed gradients of `parameters` over the ranks, bucket by bucket, the last parameters first.

    Used like `GradientBuckets`.

    Parameters
        compressor  copied for every parameter
        overlap     True: buckets are sent during backward. QuantizedAllReduce, sparse all-reduces and DGC with clipping
                    send after backward in any case
        bucket_mb   size of a bucket of gradients, before compression, in megabytes (1 MB = 1e6 bytes)
        algorithm   of compressors that all-reduce (RandomK, PowerSGD), as in `comm.all_reduce`
        names       the parameters' names in the model, which seed the compressors' random numbers; default: their
                    numbers
        seed        of the run

    Notes
        A parameter without a gradient counts as zero if another rank has one. If no rank has one, its gradient stays
        None, unless a compressor that keeps its errors sends something. One byte per parameter, all-reduced after the
        gradients, says whether any rank has one. Frozen parameters are skipped.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        comm: Communicator,
        compressor: Compressor,
        overlap: bool = True,
        bucket_mb: float = 1.0,
        algorithm: AllReduceAlgorithm = "auto",
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
        self._used: list[bool] = []  # whether this rank has a gradient, for the parameters so far
        self._waiting: list[Callable[[], list[Sum]]] = []  # one per bucket
        self._norm: float | None = None  # of this step's gradient, once requested

    def begin_epoch(self, epoch: int) -> None:
        """Epoch number `epoch`, from 0, begins."""
        for compressor in self.compressors:
            compressor.begin_epoch(epoch)

    def begin(self) -> None:
        """Call before the backward that completes the gradients."""
        if self.overlap:
            self._order.watch()

    def finish(self) -> None:
        """Set every parameter's gradient to the sum of the ranks' compressed gradients; call after backward."""
        self._order.release_rest()
        self._order.restart()
        sums = [one.total for wait in self._waiting for one in wait()]
        users = self.comm.all_reduce(np.array(self._used, np.uint8), op="max", algorithm=self.algorithm)
        for parameter, total, is_used in zip(self.parameters, sums, users, strict=True):
            if is_used or (self.compressors[0].keeps_errors and total.any()):  # late gradients count, too
                parameter.grad = kernels.array_module(parameter.data).asarray(total)
            else:
                parameter.grad = None
        self._used, self._waiting, self._norm = [], [], None

    def _gradient_norm(self) -> float:
        """The 2-norm of this rank's gradient of all parameters; called after backward."""
        if self._norm is None:
            self._norm = norm(gradient(self.parameters))
        return self._norm

    def _send(self, i: int) -> None:
        adding_up = []
        for parameter in self.buckets[i]:
            self._used.append(parameter.grad is not None)
            local = gradient([parameter]).reshape(parameter.shape)
            adding_up.append(self._compressor_of[parameter].add_up(local, self.comm.size, self.comm.rank))
        label = f"{self._label} {i}"  # ranks may begin it from different lines
        wait = exchange.begin(adding_up, self.comm, self.algorithm, self.overlap, label, self._gradient_norm)
        if not self.overlap:
            sums = wait()
            self._waiting.append(lambda: sums)
        else:
            self._waiting.append(wait)


def check(compressor: Compressor, job: Job) -> None:
    """Raise ValueError if this compressor does not fit the job's model or optimizer."""
    model = job.build_model()
    name = type(compressor).__name__
    try:
        compressor.check_optimizer(job.build_optimizer(model))
    except ValueError as error:
        raise ValueError(f"{name} does not fit the optimizer: {error}") from error
    for parameter_name, parameter in model.named_parameters():
        try:
            if parameter.requires_grad:
                compressor.check(parameter.shape, parameter.dtype)
        except ValueError as error:
            raise ValueError(f"{name} does not fit the parameter {parameter_name}: {error}") from error
