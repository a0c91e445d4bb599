"""Which layers get a share of the features, between a `ColumnLinear` and the next `RowLinear`, and what they become."""

from __future__ import annotations

from functools import partial
from typing import Any

from minidl.nn import (
    BatchNorm1d,
    BatchNorm2d,
    Dropout,
    GroupNorm,
    LayerNorm,
    LogSoftmax,
    Module,
    Parameter,
    Softmax,
    run_stages,
)
from minidl.parallel.tensor.convolution import ColumnConv2d, RowConv2d, ShardedBatchNorm
from minidl.parallel.tensor.dropout import ShardedDropout
from minidl.parallel.tensor.linear import ColumnLinear, RowLinear

WAY_OUT = "give the ColumnLinear before it gather='always', and leave the linear layer behind it whole"


def sharded_layers(model: Module, divided: Module, x: Any) -> dict[str, type[Module]]:
    """The layout of the dropouts and batch norms that get sharded features: a share of one mask, of the channels.

    Parameters
        model     the whole model, whose stages are called once; changed in place
        divided   the same model after `split_layers`
        x         samples

    What a model's own code computes between the layers, such as `F.softmax`, is not seen.

    Raises
        ValueError    another layer needs all features of a sample, or has weights, but gets a share of the features; a
                      layer gets a share in one place and the whole in another. The message names the layer
    """
    layers, widths, whole = dict(divided.named_modules()), set[int](), set[str]()
    found: dict[str, type[Module]] = {}
    own = {layer: [each for each in vars(layer).values() if isinstance(each, Parameter)] for layer in model.modules()}
    trained = {layer for layer, parameters in own.items() if any(each.requires_grad for each in parameters)}
    # A gradient is required by what was computed from sharded features, and by nothing else
    model.requires_grad_(False).eval()

    def call(name: str, layer: Module, forward: Any, *args: Any, **options: Any) -> Any:
        now = layers.get(name)
        if not (args and getattr(args[0], "requires_grad", False)):
            whole.add(name)
        elif type(now) is type(layer):
            replacement = _replacement(name, layer, args[0].shape, widths)
            found.update(replacement)
            if layer in trained and not replacement:
                raise ValueError(
                    f"{name} cannot be divided: each rank would have a gradient of the weights of this "
                    f"{type(layer).__name__} from its share of the features alone: {WAY_OUT}"
                )
        out = forward(*args, **options)
        if isinstance(now, (ColumnLinear, ColumnConv2d)) and now.gather != "always":
            widths.add(out.shape[1 if isinstance(now, ColumnConv2d) else -1])
            return out.detach().requires_grad_() * 1.0  # no leaf, so that it may be written in place
        return out.detach() if isinstance(now, (RowLinear, RowConv2d)) else out

    for name, layer in list(model.named_modules()):
        vars(layer)["forward"] = partial(call, name, layer, layer.forward)
    run_stages(model.stages(), x)
    if both := sorted(found.keys() & whole):
        raise ValueError(f"{both[0]} gets sharded features in one place and whole ones in another: use two layers")
    return found


def _replacement(name: str, layer: Module, shape: tuple[int, ...], widths: set[int]) -> dict[str, type[Module]]:
    """What becomes of a layer whose input, computed from features of these widths, has that shape."""
    features_are_last = shape[-1] in widths
    if isinstance(layer, Dropout) and layer.p > 0:
        if type(layer) is Dropout and features_are_last:
            return {name: ShardedDropout}
        raise ValueError(
            f"{name} is a {type(layer).__name__}, whose input of shape {shape} is divided: use a plain Dropout, "
            f"and name the divided axis in the layout, {name!r}: partial(ShardedDropout, axis=...)"
        )
    if type(layer) in (BatchNorm1d, BatchNorm2d) and shape[1] in widths:
        return {name: ShardedBatchNorm}
    axis = _normalized_axis(layer)
    if axis is not None and shape[axis] in widths:
        raise ValueError(
            f"{name} cannot be divided: {type(layer).__name__} needs all features of a sample, and a rank has a "
            f"share of them there: {WAY_OUT}"
        )
    return {}


def _normalized_axis(layer: Module) -> int | None:
    """The axis of which the layer needs the whole; None: it treats every number by itself, or is no such layer."""
    match layer:
        case Softmax() | LogSoftmax():
            return layer.dim
        case GroupNorm():
            return 1
        case LayerNorm():
            return -1
    return None
