"""Gradient buckets: groups of gradients, each all-reduced as soon as backward has completed it.

Every message has a start-up cost, so a hundred small gradients travel faster together. But waiting for all would leave
the network idle during backward. Hence buckets: filled in the order in which backward completes gradients, the last
layer's first, and reduced while backward goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np

from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.cluster.comm import Communicator
from minidl.cluster.work import Work
from minidl.kernels import Array
from minidl.parallel.gradients.backward_order import InBackwardOrder
from minidl.parallel.gradients.flat_vector import gradients, set_gradient
from minidl.tensor import Tensor

_T = TypeVar("_T", bound=Tensor)


class GradientBuckets:
    """All-reduces (sums) the gradients of `parameters` over the ranks, bucket by bucket.

    Call `begin()` before the backward that completes the gradients: with `overlap`, buckets are then reduced while it
    goes on. After backward, `finish()` reduces the remaining ones. Where several of these follow each other, as the
    chunks of a pipeline, call `end()` after the backward of each, on ranks without samples too: all ranks then begin
    their all-reduces in one order.

    Parameters
        parameters  of the model; frozen ones are skipped
        comm        communicator of the ranks
        bucket_mb   greatest size of a bucket of several gradients, in megabytes (1e6 bytes)
        algorithm   all-reduce, as in `comm.all_reduce`
        overlap     whether messages travel during backward
        alike       further parameters, which backward completes first, and a communicator that sums their gradients: of
                    some ranks of comm, where the others have the same gradients

    A missing gradient counts as zero if another rank has one. If no rank has one, the parameter stays without one,
    and the optimizer skips it, as on one node.

    References
        Li et al., PyTorch Distributed (arXiv:2006.15704), sections 3.2.2 and 3.2.3.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        comm: Communicator,
        bucket_mb: float,
        algorithm: AllReduceAlgorithm,
        overlap: bool = True,
        alike: tuple[Sequence[Tensor], Communicator] | None = None,
    ) -> None:
        self.comm, self.algorithm, self.overlap = comm, algorithm, overlap
        self.buckets: list[list[Tensor]] = []
        self._comms: list[Communicator] = []  # of each bucket
        for group, ranks in (*([alike] if alike else []), (parameters, comm)):
            self.buckets += fill([parameter for parameter in group if parameter.requires_grad], bucket_mb * 1e6)
            self._comms += [ranks] * (len(self.buckets) - len(self._comms))
        self._order = InBackwardOrder(self.buckets, self._reduce)
        self._used: list[bool] = []  # for each parameter of the buckets so far: has this rank a gradient
        self._sums: list[Array] = []  # for each bucket so far: its gradients, being added up
        self._in_flight: list[Work] = []  # the all-reduces of those sums

    def begin_epoch(self, epoch: int) -> None:
        """An epoch begins; the buckets stay the same."""

    def begin(self) -> None:
        """The next backward completes the gradients."""
        if self.overlap:
            self._order.watch()

    def end(self) -> None:
        """Backward has completed the gradients: with `overlap`, reduce the remaining buckets now, before `finish`."""
        if self.overlap:
            self._order.release_rest()

    def finish(self) -> None:
        """Give every parameter the sum of its gradients over the ranks."""
        self._order.release_rest()
        self._order.restart()
        for bucket, total in zip(self.buckets, self._sums, strict=True):
            set_gradient(bucket, total)  # the counts at the end of the last bucket are no gradients
        users = self._sums[-1][-len(self._used) :] if self.buckets else []
        for parameter, count in zip(chain.from_iterable(self.buckets), users, strict=True):
            if count == 0:
                parameter.grad = None
        self._used, self._sums, self._in_flight = [], [], []

    def _reduce(self, i: int) -> None:
        """Start the all-reduce of bucket i; that of the last bucket ends here, after all others."""
        bucket, is_last = self.buckets[i], i == len(self.buckets) - 1
        self._used += [parameter.grad is not None for parameter in bucket]
        total = self._filled(bucket, is_last)
        if is_last:
            for work in self._in_flight:
                work.wait()
        label = f"bucket {i}"  # ranks may begin it from different lines
        is_hidden = self.overlap and not is_last  # the last one begins when backward is done
        work = self._comms[i].all_reduce(total, algorithm=self.algorithm, async_op=is_hidden, label=label)
        self._sums.append(total)
        if is_hidden:
            self._in_flight.append(work)

    def _filled(self, bucket: list[Tensor], is_last: bool) -> Array:
        """The bucket as one vector. The parameters lose their gradients: these are never all there twice."""
        contents = gradients(bucket)
        for parameter in bucket:
            parameter.grad = None
        if is_last:  # it also carries, for every parameter, whether this rank has a gradient
            contents.append(np.array(self._used, contents[0].dtype))
        return contents[0] if len(contents) == 1 else np.concatenate(contents)  # a single one is summed in place


def fill(parameters: Sequence[_T], limit: float, alone: Collection[_T] = ()) -> list[list[_T]]:
    """Put the parameters, last first, into buckets of one dtype and of one parameter or at most `limit` bytes.

    alone: parameters that are buckets of their own
    """
    buckets: list[list[_T]] = []
    size = limit
    for parameter in reversed(parameters):
        nbytes = float("inf") if parameter in alone else parameter.data.nbytes
        if not buckets or size + nbytes > limit or buckets[-1][0].dtype != parameter.dtype:
            buckets.append([])
            size = 0
        buckets[-1].append(parameter)
        size += nbytes
    return buckets
