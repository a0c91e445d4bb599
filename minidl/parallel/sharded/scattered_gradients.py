"""ScatteredGradients: gradient buckets whose sums are divided among the ranks, by a reduce-scatter instead of an
all-reduce.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.cluster.collectives.partition import split
from minidl.cluster.comm import Communicator
from minidl.kept_arrays import look_at_memory
from minidl.kernels import Array
from minidl.nn import Parameter
from minidl.parallel.gradients.backward_order import InBackwardOrder
from minidl.parallel.gradients.buckets import GradientBuckets
from minidl.parallel.gradients.flat_vector import gradient, set_gradient
from minidl.parallel.sharded.flat_group import FlatGroup
from minidl.tensor import Tensor

IN_FLIGHT = 2
"""Buckets that travel at a time: one that is summed, and one that waits for it."""


class ScatteredGradients(GradientBuckets):
    """Gives each rank's slices the sums of their gradients over the ranks; used like `GradientBuckets`.

    Parameters
        groups     of parameters, the last layer's first; each is a bucket
        comm       communicator of the ranks
        algorithm  "ordered": sums are in the order of the ranks; "auto": round the ring
        overlap    whether messages travel during backward
        stage      1: the parameters keep the gradients of this rank's samples until the update; 2 and 3: they are
                   released as soon as they have been sent, during backward; 3: when `completed` is called

    Attributes
        count      called at each bucket, as `DeviceBytes`; None: nothing is counted
    """

    count: Callable[..., None] | None = None

    def __init__(
        self, groups: Sequence[FlatGroup], comm: Communicator, algorithm: AllReduceAlgorithm, overlap: bool, stage: int
    ) -> None:
        self.comm, self.algorithm, self.overlap = comm, algorithm, overlap
        self._groups, self._stage, self._is_last = groups, stage, False
        self.buckets = [[*group.parameters] for group in groups]
        self._slices: dict[Tensor, Parameter] = {whole: own for group in groups for whole, own in group.slices.items()}
        self._order = InBackwardOrder(self.buckets, self._reduce)
        self._used: list[bool] = []
        self._travelling: deque[tuple[FlatGroup, Array | None, Callable[[], Array]]] = deque()

    def begin(self) -> None:
        self._is_last = True
        if self._stage == 2 or (self._stage == 1 and self.overlap):
            self._order.watch()

    def completed(self, count: int) -> None:
        """Backward has completed the gradients of that number of groups; in the last micro-batch they are sent."""
        if self._is_last:
            self._order.release_until(count)

    def end(self) -> None:
        if self.overlap or self._stage > 1:  # those with samples have begun to send them, though they do not overlap
            self._order.release_rest()

    def finish(self) -> None:
        self._is_last = False
        self._order.release_rest()
        self._order.restart()
        while self._travelling:
            self._arrive()
        self._settle()
        users = self.comm.all_reduce(np.array(self._used, np.uint8), op="max", algorithm=self.algorithm)
        for parameter, is_used in zip(chain.from_iterable(self.buckets), users, strict=True):
            if not is_used:  # on any rank
                parameter.grad = self._slices[parameter].grad = None
        self._used = []

    def _reduce(self, i: int) -> None:
        """Begin to sum bucket i, when at most one other still travels."""
        group, bucket = self._groups[i], self.buckets[i]
        self._used += [parameter.grad is not None for parameter in bucket]
        while len(self._travelling) >= IN_FLIGHT:
            self._arrive()
        is_hidden = self.overlap and i < len(self.buckets) - 1  # the last one begins when backward is done
        is_over = self._stage == 3 and not is_hidden  # its weights are not needed again, and give it their memory
        whole = gradient(bucket, group.weights if is_over and group.weights.size else None)
        if self.count is not None:
            self.count("in backward", filled=[whole])
        if self._stage == 1:
            set_gradient(bucket, whole)
        else:
            for parameter in bucket:
                parameter.grad = None
        wait = self._begin(self.comm, whole, f"bucket {i}", is_hidden)
        self._travelling.append((group, whole if self._stage == 1 else None, wait))

    @property
    def bytes_travelling(self) -> int:
        """Bytes of the buckets that are released when they have been summed."""
        return sum(group.nbytes for group, whole, _ in self._travelling if whole is None)

    def _begin(self, comm: Communicator, whole: Array, label: str, is_hidden: bool) -> Callable[[], Array]:
        """Start the reduce-scatter; the function that is returned waits for this rank's range of the sum."""
        if self.algorithm == "ordered":
            ranges = comm.all_to_all(split(whole, comm.size), async_op=is_hidden, label=label)
            return lambda: _in_order(comm, ranges.wait() if is_hidden else ranges)
        work: Any = comm.reduce_scatter(whole, async_op=is_hidden, label=label)
        return work.wait if is_hidden else lambda: work

    def _settle(self) -> None:
        """All sums have arrived."""

    def _arrive(self) -> None:
        """Wait for the bucket that has travelled longest, and give its sum to the slices."""
        group, whole, wait = self._travelling.popleft()
        total = wait()
        look_at_memory("sum")
        if whole is not None:
            own = whole[group.own.start : group.own.stop]
            own[...] = total
            total = own
        set_gradient(list(group.slices.values()), total)


def _in_order(comm: Communicator, ranges: list[Array]) -> Array:
    for other in ranges[1:]:
        comm.reduce_into(ranges[0], other)
    return ranges[0]
