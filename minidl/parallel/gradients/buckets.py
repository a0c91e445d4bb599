"""Gradient buckets: gradients are all-reduced many at a time, each bucket as soon as backward has completed it.

A message costs a start-up time whatever its size, so a hundred small gradients go faster together; but waiting for
all of them would leave the network idle during backward. Hence buckets: filled in the order in which backward completes
gradients, the last layer's first, and reduced while backward goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.cluster.work import Work
from minidl.kernels import Array
from minidl.parallel.gradients.backward_order import InBackwardOrder
from minidl.parallel.gradients.flat_vector import gradient, set_gradient
from minidl.tensor import Tensor


class GradientBuckets:
    """All-reduces (sums) the gradients of `parameters` over the ranks, bucket by bucket.

    Call `begin()` before the backward that completes the gradients: with `overlap`, buckets are then reduced while it
    goes on. After backward, `finish()` reduces what is left. A parameter without a gradient counts as zero where others
    have one; where no rank has one, it stays without, as on one node, and the optimizer skips it. Frozen parameters
    take no part.

    Source: Li et al., PyTorch Distributed (arXiv:2006.15704), sections 3.2.2 and 3.2.3.
    """

    def __init__(
        self, parameters: Sequence[Tensor], comm: Communicator, bucket_mb: float, algorithm: str, overlap: bool = True
    ) -> None:
        self.comm, self.algorithm, self.overlap = comm, algorithm, overlap
        self.buckets = fill([parameter for parameter in parameters if parameter.requires_grad], bucket_mb * 1e6)
        self._order = InBackwardOrder(self.buckets, self._reduce)
        self._used: list[bool] = []  # has this rank a gradient, for the parameters of the buckets so far
        self._sums: list[Array] = []  # the gradients of each bucket, being added up
        self._under_way: list[Work] = []  # the all-reduces that do so

    def begin_epoch(self, epoch: int) -> None:
        """An epoch begins: buckets are the same in all of them."""

    def begin(self) -> None:
        """The next backward completes the gradients."""
        if self.overlap:
            self._order.watch()

    def finish(self) -> None:
        """Every parameter gets the sum of its gradients over the ranks."""
        self._order.rest()
        for bucket, total in zip(self.buckets, self._sums, strict=True):
            set_gradient(bucket, total)  # the counts at the end of the last bucket are no gradients
        users = self._sums[-1][-len(self._used) :] if self.buckets else []
        for parameter, count in zip(chain.from_iterable(self.buckets), users, strict=True):
            if count == 0:
                parameter.grad = None
        self._used, self._sums, self._under_way = [], [], []

    def _reduce(self, i: int) -> None:
        bucket, is_last = self.buckets[i], i == len(self.buckets) - 1
        self._used += [parameter.grad is not None for parameter in bucket]
        total = gradient(bucket)
        if is_last:  # it also carries, for every parameter, whether this rank has a gradient
            total = np.concatenate([total, np.array(self._used, total.dtype)])
            for work in self._under_way:
                work.wait()
        label = f"bucket {i}"  # begun from different lines, it is still the same call on all ranks
        is_hidden = self.overlap and not is_last  # backward is done by then: there is nothing left to hide behind
        work = self.comm.all_reduce(total, algorithm=self.algorithm, async_op=is_hidden, label=label)
        self._sums.append(total)
        if is_hidden:
            self._under_way.append(work)


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
