"""Convolutions over several ranks: each has a share of the filters, or of the channels that the filters read."""

from __future__ import annotations

from typing import Any, ClassVar

from minidl.cluster.comm import Communicator
from minidl.functional.bind import operand
from minidl.nn import Conv2d, Shard
from minidl.nn.normalization import BatchNorm
from minidl.parallel.tensor.collectives import copied, summed
from minidl.parallel.tensor.linear import check_kind, check_share, cut
from minidl.tensor import Tensor


class _ShardedConv2d(Conv2d):
    """A convolution whose weight is cut in place along dimension `dim`, and keeps its name."""

    dim: ClassVar[int]

    def __init__(self, layer: Conv2d, comm: Communicator) -> None:
        check_kind(type(self).__name__, layer, Conv2d)
        if layer.groups > 1:
            raise ValueError(f"its groups={layer.groups} read channels of their own: leave it out of the layout")
        vars(self).update(vars(layer))  # its sizes are those of the whole, as the model reads them
        self.comm = comm
        cut(self.weight, Shard("tp", comm.rank, comm.size, self.dim))


class ColumnConv2d(_ShardedConv2d):
    """A convolution divided by its filters: every rank has the channels of the output that its filters compute.

    Parameters
        layer  the whole layer; its weight and bias are cut in place, and keep their names
        comm   the ranks that divide it

    Shapes: x (n, in_channels, h, w) -> y (n, out_channels / p, oh, ow).
    Messages: none in forward, an all-reduce of x's gradient in backward.

    References
        Dryden et al., Channel and Filter Parallelism for Large-Scale CNN Training (SC'19): filter parallelism.
    """

    dim = 0
    gather: ClassVar[str] = "never"

    def __init__(self, layer: Conv2d, comm: Communicator) -> None:
        super().__init__(layer, comm)
        if self.bias is not None:
            cut(self.bias, Shard("tp", comm.rank, comm.size))

    def forward(self, x: Any) -> Tensor:
        return super().forward(copied(operand(x), self.comm))


class RowConv2d(_ShardedConv2d):
    """A convolution divided by the channels that it reads: y is the sum of what the ranks compute from theirs.

    Parameters
        layer  the whole layer; its weight is cut in place and keeps its name, its bias stays whole
        comm   the ranks that divide it

    Shapes: x (n, in_channels / p, h, w) -> y (n, out_channels, oh, ow).
    Messages: an all-reduce of y in forward, none in backward.

    References
        Dryden et al., Channel and Filter Parallelism for Large-Scale CNN Training (SC'19): channel parallelism.
    """

    dim = 1

    def forward(self, x: Any) -> Tensor:
        x = operand(x)
        check_share("RowConv2d", x.shape, -3, self.weight)
        shares = self.convolve(x, self.weight, None)
        y = summed(shares, self.comm)
        return y if self.bias is None else y + self.bias.reshape(1, self.out_channels, 1, 1)


class ShardedBatchNorm(BatchNorm):
    """Batch norm of a rank's share of the channels, after a `ColumnConv2d` or a `ColumnLinear`.

    Parameters
        layer  the whole BatchNorm1d or BatchNorm2d; its parameters and running statistics are cut in place, and keep
               their names
        comm   the ranks that divide it

    Shapes: x (n, num_features / p, ...) -> the same shape.
    Messages: none, since each channel is normalised by itself.
    """

    def __init__(self, layer: BatchNorm, comm: Communicator) -> None:
        check_kind("ShardedBatchNorm", layer, BatchNorm)
        shard = Shard("tp", comm.rank, comm.size)
        shard.check((layer.num_features,))
        vars(self).update(vars(layer))
        self.name, self.expected, self.dimensions = layer.name, layer.expected, layer.dimensions
        self.num_features = layer.num_features // comm.size
        for tensor in (*self.parameters(), *self.buffers()):
            if tensor.ndim:
                cut(tensor, shard)
