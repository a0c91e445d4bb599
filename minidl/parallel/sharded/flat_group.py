"""FlatGroup: the weights of several parameters as one vector, of which each rank owns a range."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import numpy as np

from minidl.cluster.collectives.partition import split
from minidl.cluster.comm import Communicator
from minidl.kernels import Array
from minidl.nn import Parameter
from minidl.nn.placeholder import absent
from minidl.nn.shard import FlatShard
from minidl.parallel.gradients import flat_vector as vector
from minidl.parallel.run.learner import shards_of


class FlatGroup:
    """The weights of several parameters of one dtype as one vector; the ranks own ranges of about equal length.

    A range may begin and end within a parameter, so the ranks share the weights evenly however large each parameter is.

    Parameters
        parameters  with whole arrays or, after `cut`, with this rank's elements
        comm        communicator of the ranks
        is_kept     whether this rank keeps the vector; False: only its range, except between `gather` and `release`

    Attributes
        weights  the vector, of which the parameters' arrays are views; if it is not kept, memory for it
        own      the numbers of this rank's range among the elements of the vector
        of_rank  the weights of that range, which this rank updates
        slices   for each parameter, its elements in that range, in the memory of `of_rank`; there may be none
        arriving bytes of weights that are on their way
    """

    def __init__(self, parameters: Sequence[Parameter], comm: Communicator, is_kept: bool = True) -> None:
        self.parameters, self._comm, self.arriving = parameters, comm, 0
        self._shards, self._ranges, self.own = _divided(parameters, comm)
        if is_kept:
            self.lend(vector.weights(parameters))
            self.of_rank = self.weights[self.own.start : self.own.stop]
        else:
            cuts = [shard.taken_from(p.numpy(), p.shape) for shard, p in zip(self._shards, parameters, strict=True)]
            self.of_rank = np.concatenate([cut.reshape(-1) for cut in cuts])
        ends = list(accumulate((shard.stop - shard.start for shard in self._shards), initial=0))
        self.slices: dict[Parameter, Parameter] = {}
        for parameter, shard, (start, end) in zip(parameters, self._shards, pairwise(ends), strict=True):
            part = Parameter(self.of_rank[start:end].reshape(shard.own_shape), parameter.requires_grad)
            part.shard, parameter.shard, self.slices[parameter] = shard, shard.of, part
        self.of_device: Array | None = self.of_rank  # None: only the host has this rank's range
        self._host: Communicator | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the vector."""
        return sum(map(prod, (shard.shape for shard in self._shards))) * self.of_rank.itemsize

    def move_to_host(self, comm: Communicator, keeps_copy: bool) -> None:
        """Let the host have `of_rank` and `slices`.

        comm: for transfers and for the collectives that follow them; keeps_copy: whether the device has a copy, too,
        which `fetch` renews
        """
        self._host, self.of_device = comm, self.of_rank if keeps_copy else None
        self.of_rank = self.of_rank.copy()
        for part, values in vector.slices(list(self.slices.values()), self.of_rank):
            part._data = values

    def fetch(self) -> Callable[[], Any]:
        """Begin to renew the device's copy of this rank's range; the function that is returned waits."""
        assert self._host is not None
        return self._host.background(lambda inside: inside.device.fetch(self.of_rank, out=self.of_device)).wait

    def owners(self) -> dict[Parameter, list[int]]:
        """The ranks that own elements of each parameter, in the order of the elements; rank 0 owns an empty one."""
        found, first = {}, 0
        for parameter in self.parameters:
            last = first + parameter.size
            owning = [rank for rank, r in enumerate(self._ranges) if max(first, r.start) < min(last, r.stop)]
            found[parameter], first = owning or [0], last
        return found

    def gather(self, async_op: bool = False) -> Callable[[], None]:
        """Begin to collect every rank's range; the function that is returned waits, and writes them into `weights`."""
        self.arriving = self.nbytes
        if self.of_device is None and self._host is not None:
            wait = self._host.background(lambda inside: inside.all_gather(inside.device.fetch(self.of_rank))).wait
        else:
            work: Any = self._comm.all_gather(self.of_device, async_op=async_op, label="weights")
            wait = work.wait if async_op else lambda: work

        def arrive() -> None:
            np.concatenate(wait(), out=self.weights)
            self.lend(self.weights)
            self.arriving = 0

        return arrive

    def lend(self, memory: Array) -> None:
        """Let the parameters' arrays be views of this vector, whatever it has."""
        self.weights, first = memory, 0
        for parameter, shard in zip(self.parameters, self._shards, strict=True):
            last = first + prod(shard.shape)
            # Not `data`, which counts as a write: backward finds the weights that forward read
            parameter._data, first = memory[first:last].reshape(shard.shape), last

    def release(self, names: Mapping[Parameter, str]) -> None:
        """End that: until the next `gather`, every use of the parameters is an error, which says their names."""
        for parameter, shard in zip(self.parameters, self._shards, strict=True):
            parameter._data = absent(shard.shape, parameter.dtype, None, names[parameter])


def cut(parameters: Sequence[Parameter], comm: Communicator) -> None:
    """Keep only this rank's elements of parameters that will be a group; within `nn.building`, no others are made."""
    for parameter, shard in zip(parameters, _divided(parameters, comm)[0], strict=True):
        parameter.cut(shard)


def _divided(parameters: Sequence[Parameter], comm: Communicator) -> tuple[list[FlatShard], list[range], range]:
    """This rank's elements of each parameter; all ranks' ranges, and this rank's."""
    shapes = [shape_of(parameter) for parameter in parameters]
    ranges = split(range(sum(map(prod, shapes))), comm.size)
    own = ranges[comm.rank]
    shards = [
        replace(shard, of=p.shard.of if isinstance(p.shard, FlatShard) else p.shard)
        for shard, p in zip(shards_of(shapes, own.start, own.stop), parameters, strict=True)
    ]
    return shards, ranges, own


def shape_of(parameter: Parameter) -> tuple[int, ...]:
    """The shape of what the ranks divide: the whole parameter, or the shard that they all have of it."""
    shard = parameter.shard
    if isinstance(shard, FlatShard):
        return shard.shape
    return parameter.shape if shard is None or parameter.held else shard.own_shape(parameter.shape)
