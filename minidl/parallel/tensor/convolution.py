"""Convolutions over several ranks: each has a share of the filters, of the channels that they read, or of both.

    class           x       y       forward         backward        what stays where it is
    ColumnConv2d    whole   share                   all-reduce      y
    RowConv2d       share   whole   all-reduce                      x
    GridConv2d      share   share   reduce-scatter  all-gather      x, with as many channel groups as ranks
                                    all-gather      reduce-scatter  y, with one
                                    both            both            the weights, in between

A `ColumnConv2d` before a `RowConv2d` sends two all-reduces of whole arrays, which every rank keeps whole. A
`GridConv2d` after the other sends half as much for a layer, and every rank keeps a share of each array.

References
    Dryden et al., Channel and Filter Parallelism for Large-Scale CNN Training (SC'19), section 3: the three algorithms
    with stationary x, y and w.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

from minidl.cluster.comm import Communicator
from minidl.cluster.mesh import Mesh
from minidl.functional.bind import operand
from minidl.nn import Conv2d, GridShard, Shard
from minidl.nn.normalization import BatchNorm
from minidl.parallel.tensor.collectives import copied, gathered_whole, sliced, summed, summed_sliced
from minidl.parallel.tensor.linear import check_kind, check_share, cut
from minidl.tensor import Tensor


class _ShardedConv2d(Conv2d):
    """A convolution whose weight is cut in place, and keeps its name."""

    def __init__(self, layer: Conv2d, comm: Communicator, shard: Shard) -> None:
        check_kind(type(self).__name__, layer, Conv2d)
        if layer.groups > 1:
            raise ValueError(f"its groups={layer.groups} read channels of their own: leave it out of the layout")
        vars(self).update(vars(layer))  # its sizes are those of the whole, as the model reads them
        self.comm = comm
        cut(self.weight, shard)

    def with_bias(self, y: Tensor) -> Tensor:
        return y if self.bias is None else y + self.bias.reshape(-1, 1, 1)


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

    gather: ClassVar[str] = "never"

    def __init__(self, layer: Conv2d, comm: Communicator) -> None:
        super().__init__(layer, comm, Shard("tp", comm.rank, comm.size))
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

    def __init__(self, layer: Conv2d, comm: Communicator) -> None:
        super().__init__(layer, comm, Shard("tp", comm.rank, comm.size, dim=1))

    def forward(self, x: Any) -> Tensor:
        x = operand(x)
        check_share("RowConv2d", x.shape, -3, self.weight.shape[1])
        return self.with_bias(summed(self.convolve(x, self.weight, None), self.comm))


class GridConv2d(_ShardedConv2d):
    """A convolution divided by its filters and by the channels that they read; every rank has a share of x and of y.

    Parameters
        layer     the whole layer; its weight and bias are cut in place, and keep their names
        comm      the p ranks that divide it
        channels  groups of channels, a divisor of p; the filters are divided into p / channels groups:
                  p             stationary x: the ranks' sums are reduce-scattered, their gradients all-gathered
                  1             stationary y: x is all-gathered, its gradient reduce-scattered
                  in between    stationary w: both, among p / channels and among `channels` ranks; the default, with the
                                divisor of p that is nearest below its root

    Shapes: x (n, in_channels / p, h, w) -> y (n, out_channels / p, oh, ow); weight (out_channels channels / p,
    in_channels / channels, kh, kw).
    Messages: a rank sends in_channels (p / channels - 1) / p numbers for each pixel of x, and out_channels (channels -
    1) / p for each pixel of y, in forward and again in backward. In between, the first call costs a small message.
    The channels of x that are gathered are kept for backward.

    References
        Dryden et al., Channel and Filter Parallelism for Large-Scale CNN Training (SC'19), section 3.
    """

    gather: ClassVar[str] = "never"

    def __init__(self, layer: Conv2d, comm: Communicator, channels: int | None = None) -> None:
        if channels is None:
            channels = max(each for each in range(1, comm.size + 1) if comm.size % each == 0 and each**2 <= comm.size)
        super().__init__(layer, comm, GridShard("tp", comm.rank, comm.size, channels=channels))
        self.channels = channels
        if self.bias is not None:
            cut(self.bias, Shard("tp", comm.rank, comm.size))

    @cached_property
    def mesh(self) -> Mesh[Communicator]:
        """The ranks: along "channels" they share filters, along "filters" the channels that these read."""
        return self.comm.mesh((self.channels, self.comm.size // self.channels), ("channels", "filters"))

    def forward(self, x: Any) -> Tensor:
        x = operand(x)
        check_share("GridConv2d", x.shape, -3, self.in_channels // self.comm.size)
        terms = self.convolve(gathered_whole(x, self.mesh["filters"], -3), self.weight, None)
        return self.with_bias(summed_sliced(terms, self.mesh["channels"], -3))


class SampleConv2d(Conv2d):
    """The convolution with which data parallelism begins: every rank computes it for a slice of the samples.

    Parameters
        layer  the whole layer; every rank keeps its whole weight and bias
        comm   the ranks that divide the samples

    Shapes: x (n, in_channels, h, w), the same on every rank -> y (n / p, out_channels, oh, ow); where sizes differ, the
    first ranks have one more. The gradients of its weights, and of those of the layers behind it, are those of the
    slice; the strategy sums them over the ranks.
    """

    def __init__(self, layer: Conv2d, comm: Communicator) -> None:
        check_kind("SampleConv2d", layer, Conv2d)
        vars(self).update(vars(layer))
        self.comm = comm

    def forward(self, x: Any) -> Tensor:
        return super().forward(sliced(operand(x), self.comm, 0))


class ShardedBatchNorm(BatchNorm):
    """Batch norm of a rank's share of the channels, after a `ColumnConv2d`, `GridConv2d` or `ColumnLinear`.

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
