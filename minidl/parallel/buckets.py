"""Gradient buckets: gradients are all-reduced in large pieces, each as soon as backward has completed it.

A message costs a start-up time whatever its size, so a hundred small gradients go faster together; but waiting for
all of them would leave the network idle during backward. Hence buckets: filled in the order in which backward completes
gradients, the last layer's first, and reduced when full.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.parallel.vector import gradient, set_gradient
from minidl.tensor import Tensor


class GradientBuckets:
    """All-reduces (sums) the gradients of `parameters` over the ranks, bucket by bucket.

    Hooks on the parameters count the completed gradients. Buckets are reduced strictly in order, the same on every
    rank, however the ranks' backward passes run; after backward, `finish()` reduces what is left. A parameter without
    a gradient counts as zero where others have one; where no rank has one, it stays without, as on one node: the
    optimizer passes it over. Frozen parameters take no part.

    Source: Li et al., PyTorch Distributed (arXiv:2006.15704), sections 3.2.2 and 3.2.3.
    """

    def __init__(self, parameters: Sequence[Tensor], comm: Communicator, bucket_mb: float, algorithm: str) -> None:
        self.comm, self.algorithm = comm, algorithm
        parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self.buckets = fill(parameters, bucket_mb * 1e6)
        self._bucket_of = {parameter: i for i, bucket in enumerate(self.buckets) for parameter in bucket}
        self._start()
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self._gradient_ready)

    def finish(self) -> None:
        """Reduce the buckets that are not reduced yet, and get ready for the next backward."""
        while self._next < len(self.buckets):
            self._reduce(self.buckets[self._next])
        self._start()

    def _start(self) -> None:
        self._missing = [len(bucket) for bucket in self.buckets]
        self._next = 0
        self._used: list[bool] = []  # has this rank a gradient, for the parameters of the buckets so far

    def _gradient_ready(self, parameter: Tensor) -> None:
        self._missing[self._bucket_of[parameter]] -= 1
        while self._next < len(self.buckets) and self._missing[self._next] == 0:
            self._reduce(self.buckets[self._next])

    def _reduce(self, bucket: list[Tensor]) -> None:
        self._next += 1
        self._used += [parameter.grad is not None for parameter in bucket]
        flat = gradient(bucket)
        gradients = flat.size
        if is_last := self._next == len(self.buckets):  # with it travels, for all parameters: who has a gradient
            flat = np.concatenate([flat, np.array(self._used, flat.dtype)])
        self.comm.all_reduce(flat, algorithm=self.algorithm)
        set_gradient(bucket, flat[:gradients])
        if is_last:
            for parameter, users in zip(chain.from_iterable(self.buckets), flat[gradients:], strict=True):
                if users == 0:
                    parameter.grad = None


def fill(parameters: Sequence[Tensor], limit: float) -> list[list[Tensor]]:
    """Deal the parameters, last first, into buckets of one dtype and at most `limit` bytes (one parameter at least)."""
    buckets: list[list[Tensor]] = []
    size = limit
    for parameter in reversed(parameters):
        nbytes = parameter.data.nbytes
        if not buckets or size + nbytes > limit or buckets[-1][0].dtype != parameter.dtype:
            buckets.append([])
            size = 0
        buckets[-1].append(parameter)
        size += nbytes
    return buckets
