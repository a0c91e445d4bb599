"""Dropout of a sharded tensor: every rank applies its shard of the mask that one node would draw."""

from __future__ import annotations

from typing import Any

from minidl import random
from minidl.cluster.comm import Communicator
from minidl.functional.bind import operand
from minidl.functional.dropout import dropping, kept_elements
from minidl.nn import Dropout
from minidl.parallel.tensor.collectives import own_slice
from minidl.tensor import Tensor, record


class ShardedDropout(Dropout):
    """Dropout of a tensor that is sharded along an axis: features after a `ColumnLinear`, positions or samples.

    Parameters
        layer  the dropout to replace
        comm   the ranks that share the tensor
        axis   axis along which it is sharded; along 0, samples, ranks may have different numbers, which they add up

    Every rank draws the mask of the whole tensor and takes its shard, so that a run has the masks of one node. For a
    tensor that every rank holds whole, plain `Dropout` suffices: it draws the same mask on every rank.
    """

    def __init__(self, layer: Dropout, comm: Communicator, axis: int = -1) -> None:
        super().__init__(layer.p)
        self.comm, self.axis = comm, axis

    def forward(self, x: Any) -> Tensor:
        x = operand(x)
        if not self.training or self.p == 0:
            return x
        whole = list(x.shape)
        whole[self.axis] = self.comm.all_reduce(x.shape[0]) if self.axis == 0 else x.shape[self.axis] * self.comm.size
        kept = kept_elements(x.data, tuple(whole), self.p, random.layer_generator(self))
        share = own_slice(kept, self.comm, self.axis).copy()  # a view would keep the whole mask until backward
        drop = dropping(share, self.p, x.dtype)
        return record(drop(x.data), (x,), lambda g, needs: (drop(g),))
