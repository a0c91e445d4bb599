"""Which layers get a share of the features, between a `ColumnLinear` and the next `RowLinear`, and what they become."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from minidl.nn import (
    BatchNorm1d,
    BatchNorm2d,
    Conv2d,
    Dropout,
    Flatten,
    GroupNorm,
    LayerNorm,
    Linear,
    LogSoftmax,
    Module,
    Parameter,
    Softmax,
    run_stages,
)
from minidl.parallel.tensor.convolution import ColumnConv2d, GridConv2d, RowConv2d, ShardedBatchNorm
from minidl.parallel.tensor.dropout import ShardedDropout
from minidl.parallel.tensor.linear import FIRST, ColumnLinear, RowLinear

WAY_OUT = "leave the layers before and behind it whole; a ColumnLinear before it may be divided with gather='always'"
DIVIDED = (ColumnLinear, RowLinear, ColumnConv2d, RowConv2d, GridConv2d, ShardedBatchNorm, ShardedDropout)
Sharded = set[tuple[int, int]]  # the axis of the features, -1 or the 1 of images, and how many there are in all


def sharded_layers(model: Module, divided: Module, x: Any) -> dict[str, Any]:
    """The layout of the dropouts and batch norms that get sharded features: a share of one mask, of the channels.

    Parameters
        model     the whole model, whose stages are called once; changed in place
        divided   the same model after `split_layers`
        x         samples

    What a model's own code computes between the layers, such as `F.softmax`, is not seen.

    Raises
        ValueError    a layer that reads a share of the features gets all; another layer needs all features of a
                      sample, or has weights, but gets a share; a layer gets a share in one place and the whole in
                      another; the model's outputs are a share. The message names the layer
    """
    layers, widths, whole = dict(divided.named_modules()), Sharded(), set[str]()
    found: dict[str, Any] = {}
    own = {layer: [each for each in vars(layer).values() if isinstance(each, Parameter)] for layer in model.modules()}
    trained = {layer for layer, parameters in own.items() if any(each.requires_grad for each in parameters)}
    # A gradient is required by what was computed from sharded features, and by nothing else
    model.requires_grad_(False).eval()

    def call(name: str, layer: Module, forward: Any, *args: Any, **options: Any) -> Any:
        now = layers.get(name)
        if not (args and getattr(args[0], "requires_grad", False)):
            whole.add(name)
            if isinstance(now, (RowLinear, RowConv2d, GridConv2d)) and not others:
                kind = type(now).__name__
                raise ValueError(
                    f"{name} cannot be divided: a {kind} reads a rank's share of the features, and gets all of them: "
                    f"divide the layer before it by {FIRST[kind]}, or leave this one out of the layout"
                )
        elif type(now) is type(layer):
            replacement = _replacement(name, layer, args[0].shape, widths)
            found.update(replacement)
            if layer in trained and not replacement:
                row = {Linear: "RowLinear", Conv2d: "RowConv2d"}.get(type(layer))
                raise ValueError(
                    f"{name} cannot be divided: each rank would have a gradient of the weights of this "
                    f"{type(layer).__name__} from its share of the features alone: "
                    f"{f'make it a {row} in the layout, or ' if row else ''}{WAY_OUT}"
                )
        out = forward(*args, **options)
        if isinstance(now, (ColumnLinear, ColumnConv2d, GridConv2d)) and now.gather != "always":
            axis = -1 if isinstance(now, ColumnLinear) else 1
            widths.add((axis, out.shape[axis]))
            return out.detach().requires_grad_() * 1.0  # no leaf, so that it may be written in place
        if type(layer) is Flatten and _sharded_axis(args[0].shape, widths) == 1 and out.ndim == 2:
            widths.add((-1, out.shape[-1]))  # channel by channel
        return out.detach() if isinstance(now, (RowLinear, RowConv2d)) else out

    # Layers of a user's own may gather or divide features
    others = any(
        type(layers.get(name)) is not type(layer) and not isinstance(layers.get(name), DIVIDED)
        for name, layer in model.named_modules()
    )
    for name, layer in list(model.named_modules()):
        vars(layer)["forward"] = partial(call, name, layer, layer.forward)
    out = run_stages(model.stages(), x)
    if getattr(out, "requires_grad", False) and not others and not any(map(_is_head, layers.values())):
        raise ValueError(
            "the model's outputs would be a rank's share of them: end the layout with a RowLinear or a whole layer, or "
            "make the last one a ColumnLinear with gather='evaluation'"
        )
    if both := sorted(found.keys() & whole):
        raise ValueError(f"{both[0]} gets sharded features in one place and whole ones in another: use two layers")
    return found


def _is_head(layer: Module) -> bool:
    """Whether the loss reads a share of the layer's outputs."""
    return isinstance(layer, ColumnLinear) and layer.gather == "evaluation"


def _replacement(name: str, layer: Module, shape: tuple[int, ...], widths: Sharded) -> dict[str, Any]:
    """What becomes of a layer whose input, computed from such features, has that shape."""
    divided = _sharded_axis(shape, widths)
    if isinstance(layer, Dropout) and layer.p > 0:
        if type(layer) is Dropout and divided is not None:
            return {name: ShardedDropout if divided == -1 else partial(ShardedDropout, axis=divided)}
        raise ValueError(
            f"{name} is a {type(layer).__name__}, whose input of shape {shape} is divided: use a plain Dropout, "
            f"and name the divided axis in the layout, {name!r}: partial(ShardedDropout, axis=...)"
        )
    if divided is None:
        return {}
    if type(layer) in (BatchNorm1d, BatchNorm2d) and divided % len(shape) == 1:
        return {name: ShardedBatchNorm}
    if divided % len(shape) in (axis % len(shape) for axis in _normalized_axes(layer)):
        raise ValueError(
            f"{name} cannot be divided: {type(layer).__name__} needs all features of a sample, and a rank has a "
            f"share of them there: {WAY_OUT}"
        )
    return {}


def _sharded_axis(shape: tuple[int, ...], widths: Sharded) -> int | None:
    """The axis of which a rank has a share; None: the shape does not show it."""
    possible = (1, -1) if len(shape) == 4 else (-1,)
    return next((axis for axis in possible if (axis, shape[axis]) in widths), None)


def _normalized_axes(layer: Module) -> Sequence[int]:
    """The axes of which the layer needs the whole; none: it treats every number by itself, or is no such layer."""
    match layer:
        case Softmax() | LogSoftmax():
            return (layer.dim,)
        case GroupNorm():
            return (1,)
        case LayerNorm():
            return range(-len(layer.normalized_shape), 0)
    return ()
