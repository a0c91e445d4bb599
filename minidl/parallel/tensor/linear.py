"""Linear layers over several ranks: each computes a share of the outputs, or a share of every output's sum."""

from __future__ import annotations

from typing import Any

from minidl import functional as F
from minidl import kernels
from minidl.arguments import one_of
from minidl.cluster.comm import Communicator
from minidl.functional.bind import operand
from minidl.functional.one_type import converted, in_one_type
from minidl.kernels import Array
from minidl.nn import Linear, Module, Shard
from minidl.nn.parameter import ModelTensor
from minidl.parallel.tensor.collectives import (
    copied,
    gathered,
    gathered_whole,
    joined,
    reduce_scattered,
    summed,
    summed_sliced,
)
from minidl.tensor import Tensor, record

GATHER = ("never", "evaluation", "always")
FIRST = {"RowLinear": "ColumnLinear", **dict.fromkeys(("RowConv2d", "GridConv2d"), "ColumnConv2d or GridConv2d")}
"""For a layer that reads a share of the features: those that give one."""


class ColumnLinear(Module):
    """A linear layer divided by its outputs: y = x [A_1, A_2, ...], and every rank has the outputs of its A_i.

    Parameters
        layer      the whole layer; its weight and bias are cut in place, and keep their names
        comm       the ranks that divide it
        blocks     equal blocks of outputs that are each divided, such as 3 for query, key and value in one matrix
        unit       consecutive outputs that stay together, such as those of an attention head
        gather     "never": every rank returns its share of the outputs, for a `RowLinear`; "evaluation": all outputs in
                   evaluation, and its share in training, for `vocabulary_cross_entropy`; "always": all outputs
        slices     axis of x of which every rank has a slice that is gathered here: 1 for positions, 0 for samples;
                   None: every rank has the whole x

    Shapes: x (..., in_features) -> y (..., out_features / p), (..., out_features) where gathered.
    Messages: none in forward, an all-reduce of x's gradient in backward. With `slices` an all-gather of x in forward,
    and a reduce-scatter of its gradient in backward; with selective recomputation x is not kept whole, and backward
    gathers it again.

    References
        Shoeybi et al., Megatron-LM (arXiv:1909.08053), section 3, figure 3; Korthikanti et al. (arXiv:2205.05198),
        section 4.2.2.
    """

    recomputes_selectively = False

    def __init__(
        self,
        layer: Linear,
        comm: Communicator,
        blocks: int = 1,
        unit: int = 1,
        gather: str = "never",
        slices: int | None = None,
    ) -> None:
        check_kind("ColumnLinear", layer, Linear)
        one_of("ColumnLinear: gather", gather, GATHER)
        units = layer.weight.shape[0] // (blocks * unit)
        if unit > 1 and units % comm.size:
            raise ValueError(
                f"{units} units of {unit} outputs, such as attention heads, are no multiple of {comm.size}"
            )
        self.comm, self.gather, self.slices = comm, gather, slices
        self.in_features, self.out_features = layer.in_features, layer.out_features  # whole, as the model reads them
        self.weight, self.bias = layer.weight, layer.bias
        cut(self.weight, Shard("tp", comm.rank, comm.size, dim=0, blocks=blocks))
        if self.bias is not None:
            cut(self.bias, Shard("tp", comm.rank, comm.size, dim=0, blocks=blocks))

    def forward(self, x: Any) -> Tensor:
        x = operand(x)
        if self.slices is not None and self.recomputes_selectively:
            y = _linear_of_slices(x, self.weight, self.bias, self.comm, self.slices)
        else:
            whole = copied(x, self.comm) if self.slices is None else gathered_whole(x, self.comm, self.slices)
            y = F.linear(whole, self.weight, self.bias)
        is_gathered = self.gather == "always" or (self.gather == "evaluation" and not self.training)
        return gathered(y, self.comm) if is_gathered else y


def _linear_of_slices(x: Tensor, weight: Tensor, bias: Tensor | None, comm: Communicator, axis: int) -> Tensor:
    """`F.linear` of the ranks' slices x, which keeps this rank's slice alone, and gathers again in backward."""
    mine = x.data
    whole, weight, bias = in_one_type("linear", Tensor(joined(mine, comm, axis)), weight, bias)  # sent in the type of x
    w, shape = weight.data, whole.shape
    out = kernels.current().linear(whole.data.reshape(-1, shape[-1]), w, None if bias is None else bias.data)

    def separable_vjp(g: Array, needs: Any) -> tuple[Any, ...]:
        kernel, rows = kernels.current(), g.reshape(-1, w.shape[0])
        of_x = of_weight = None
        if needs[0]:
            of_whole = converted(Tensor(kernel.matmul(rows, w)), mine.dtype).data
            of_x = reduce_scattered(of_whole.reshape(shape), comm, axis)
        if needs[1]:
            again = converted(Tensor(joined(mine, comm, axis)), w.dtype).data
            of_weight = kernel.matmul(rows.T, again.reshape(-1, shape[-1]))
        return (of_x, of_weight) if bias is None else (of_x, of_weight, needs[2] and kernel.sum_rows(rows))

    out = out.reshape(*shape[:-1], len(w))
    return record(out, (x, weight) if bias is None else (x, weight, bias), separable_vjp, saved=(0, 1))


class RowLinear(Module):
    """A linear layer divided by its inputs: y = sum of x_i A_i, and every rank has the share x_i of the inputs.

    Parameters
        layer      the whole layer; its weight is cut in place and keeps its name, its bias stays whole
        comm       the ranks that divide it
        slices     axis of y of which every rank gets a slice: 1 for positions, 0 for samples; None: the whole y

    The bias is added once, to the sum: added by every rank, it would count p times.

    Shapes: x (..., in_features / p) -> y (..., out_features), with slices=1 (n, t / p, out_features).
    Messages: an all-reduce of y in forward, none in backward. With `slices` a reduce-scatter in forward, and an
    all-gather in backward.

    References
        Shoeybi et al., Megatron-LM (arXiv:1909.08053), section 3, figure 3.
    """

    def __init__(self, layer: Linear, comm: Communicator, slices: int | None = None) -> None:
        check_kind("RowLinear", layer, Linear)
        self.comm, self.slices = comm, slices
        self.in_features, self.out_features = layer.in_features, layer.out_features  # whole, as the model reads them
        self.weight, self.bias = layer.weight, layer.bias
        cut(self.weight, Shard("tp", comm.rank, comm.size, dim=1))

    def forward(self, x: Any) -> Tensor:
        x = operand(x)
        check_share("RowLinear", x.shape, -1, self.weight.shape[1])
        shares = F.linear(x, self.weight)
        y = summed(shares, self.comm) if self.slices is None else summed_sliced(shares, self.comm, self.slices)
        return y if self.bias is None else y + self.bias


def check_kind(name: str, layer: object, kind: type[Module]) -> None:
    """Raise TypeError unless the layer that `name` is to divide is one of the kind that it divides."""
    if not isinstance(layer, kind):
        raise TypeError(f"{name} divides a layer of type {kind.__name__}, got {type(layer).__name__}")


def check_share(name: str, shape: tuple[int, ...], axis: int, features: int) -> None:
    """Raise ValueError unless this axis of an array has as many features as this rank's share has."""
    if shape[axis] != features:
        raise ValueError(
            f"a {name} reads this rank's {features} features of axis {axis}, got an array of shape {shape}: "
            f"divide the layer before it by {FIRST[name]}, or leave this one out of the layout"
        )


def cut(parameter: ModelTensor, shard: Shard) -> None:
    """Keep this rank's shard of a parameter or buffer; of one that two layers share, the first has cut it.

    Raises ValueError if the other layer has cut it in another way.
    """
    if parameter.shard is None:
        parameter.cut(shard)
    elif parameter.shard != shard:
        raise ValueError(f"two layers share a parameter: one divides it as {parameter.shard}, the other as {shard}")
