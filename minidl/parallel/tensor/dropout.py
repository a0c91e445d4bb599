"""Dropout where every rank has a share of the tensor: its share of the mask that one node draws."""

from __future__ import annotations

from typing import Any

from minidl import functional as F
from minidl import random
from minidl.cluster.comm import Communicator
from minidl.functional.bind import operand
from minidl.kernels import array_module
from minidl.nn import Dropout
from minidl.parallel.tensor.collectives import own_slice
from minidl.tensor import Tensor


class ShardedDropout(Dropout):
    """Dropout of a tensor that is divided along an axis: features behind a `ColumnLinear`, or positions.

    Parameters
        layer  the dropout to replace
        comm   the ranks that divide the tensor
        axis   along which it is divided

    Every rank draws the mask of the whole tensor and takes its share, so that a run has the masks of one node. Where
    the tensor is whole on every rank, plain `Dropout` does: it draws the same mask everywhere.
    """

    def __init__(self, layer: Dropout, comm: Communicator, axis: int = -1) -> None:
        super().__init__(layer.p)
        self.comm, self.axis = comm, axis

    def forward(self, x: Any) -> Tensor:
        x = operand(x)
        if not self.training or self.p == 0:
            return x
        whole = list(x.shape)
        whole[self.axis] *= self.comm.size
        ones = array_module(x.data).ones(whole, dtype=x.dtype)
        mask = F.dropout(ones, self.p, generator=random.layer_generator(self))
        share = own_slice(mask.data, self.comm, self.axis).copy()  # a view would keep the whole mask until backward
        return x * Tensor(share)
