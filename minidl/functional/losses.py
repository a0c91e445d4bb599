"""Losses that compare two tensors of one shape elementwise."""

from __future__ import annotations

import math
from typing import Any

from minidl import kernels
from minidl.arguments import one_of
from minidl.functional.bind import operand, unbroadcast
from minidl.functional.elementwise import signs
from minidl.functional.one_type import in_float32
from minidl.kernels import Array, array_module
from minidl.kernels.sixteen_bit import is_floating_point
from minidl.tensor import Tensor, record

REDUCTIONS = ("mean", "sum", "none")


@in_float32("x", "target")
def mse_loss(x: Any, target: Any, reduction: str = "mean") -> Tensor:
    """(x - target)**2, averaged over all elements ("mean"), summed ("sum") or not reduced ("none").

    x, target: tensors of one shape. Errors: ValueError for different shapes, or an unknown reduction.

    >>> mse_loss([1.0, 2.0], [1.0, 4.0]).item()
    2.0
    """
    x, target, difference = _compared("mse_loss", x, target, reduction)
    return _reduced(difference * difference, lambda: 2 * difference, x, target, reduction)


@in_float32("x", "target")
def l1_loss(x: Any, target: Any, reduction: str = "mean") -> Tensor:
    """|x - target|; the derivative at 0 is 0. Reductions and errors as for `mse_loss`.

    >>> l1_loss([1.0, 2.0], [1.0, 4.0]).item()
    1.0
    """
    x, target, difference = _compared("l1_loss", x, target, reduction)
    return _reduced(array_module(difference).abs(difference), lambda: signs(difference), x, target, reduction)


@in_float32("logits", "targets")
def binary_cross_entropy_with_logits(
    logits: Any, targets: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
) -> Tensor:
    """-targets log(sigmoid(logits)) - (1 - targets) log(1 - sigmoid(logits)), without overflow or cancellation.

    Parameters
        logits      any shape: the scores of the yes
        targets     of the same shape: 0 for no, 1 for yes, or a probability between them
        weight      multiplies each loss; it broadcasts to the shape of the logits, and is not differentiated
        reduction   "mean" over all elements (`weight` does not change the count), "sum" or "none"
        pos_weight  multiplies the first term, the loss of the yes: with many more no than yes, their ratio

    Errors: ValueError for two shapes, a weight that does not broadcast, or another reduction.

    >>> binary_cross_entropy_with_logits([-200.0, 0.0], [1.0, 1.0], reduction="none")
    Tensor([200.    ,   0.6931], float32)
    """
    name = "binary_cross_entropy_with_logits"
    check_reduction(name, reduction, weight)
    x, y = operand(logits), operand(targets)
    if x.shape != y.shape:
        raise ValueError(f"{name}: logits have shape {x.shape}, targets have shape {y.shape}; they must be equal")
    z = x.data
    t = y.data if y.dtype == z.dtype else y.data.astype(z.dtype)
    factor, positive = _factor(name, "weight", weight, z), _factor(name, "pos_weight", pos_weight, z)
    yes = t if positive is None else positive * t
    module = array_module(z)
    small = kernels.current().softplus(-module.abs(z))  # log(1 + exp(-|z|)): what the larger of 0 and z falls short
    losses = (1 - t) * module.maximum(z, 0) + yes * module.maximum(-z, 0) + ((1 - t) + yes) * small

    def vjp(g: Array, needs: Any) -> tuple[Array, Array]:
        g = g * z.dtype.type(1 / max(z.size, 1) if reduction == "mean" else 1)
        if factor is not None:
            g = g * factor
        sigmoid = kernels.current().sigmoid
        slope_y = (
            -z if positive is None else positive * (module.maximum(-z, 0) + small) - (module.maximum(z, 0) + small)
        )
        return needs[0] and g * ((1 - t) * sigmoid(z) - yes * sigmoid(-z)), needs[1] and g * slope_y

    if factor is not None:
        losses = losses * factor
    return record(_reduce(losses, reduction), (x, y), vjp, saved=(0, 1))


# ---- what they share ----


def check_reduction(name: str, reduction: Any, weight: Any = None) -> None:
    """Raise ValueError for an unknown reduction, TypeError for one that stands in the place of the weight."""
    if isinstance(weight, str):
        raise TypeError(f"{name}: the third argument is `weight`, as in PyTorch: write reduction={weight!r}")
    if reduction not in REDUCTIONS:
        one_of(f"{name}: reduction", reduction, REDUCTIONS)


def _compared(name: str, x: Any, target: Any, reduction: str) -> tuple[Tensor, Tensor, Array]:
    """x and target as tensors, and their difference. Raises ValueError for different shapes, TypeError for integers."""
    x, target = operand(x, target), operand(target, x)
    if not (is_floating_point(x.dtype) or is_floating_point(target.dtype)):
        raise TypeError(
            f"{name}: floating-point numbers expected, got {x.dtype} and {target.dtype}: convert them with .float()"
        )
    if x.shape != target.shape:
        raise ValueError(f"{name}: input has shape {x.shape}, target has shape {target.shape}; they must be equal")
    check_reduction(name, reduction)
    return x, target, x.data - target.data


def _reduced(losses: Array, slope: Any, x: Tensor, target: Tensor, reduction: str) -> Tensor:
    """The reduced losses as one node. slope() returns each loss's derivative by x; that by target is its negative."""
    scale = 1 / max(losses.size, 1) if reduction == "mean" else 1
    like_x, like_target = (x.shape, x.dtype), (target.shape, target.dtype)

    def vjp(g: Array, needs: Any) -> tuple[Array, Array]:
        gradient = g * scale * slope()
        return needs[0] and unbroadcast(gradient, *like_x), needs[1] and unbroadcast(-gradient, *like_target)

    return record(_reduce(losses, reduction), (x, target), vjp)


def _reduce(losses: Array, reduction: str) -> Array:
    if reduction == "none":
        return losses
    if reduction == "sum":
        return kernels.uncounted("sum")(losses)
    return (
        kernels.uncounted("mean")(losses) if losses.size else array_module(losses).asarray(math.nan, dtype=losses.dtype)
    )


def _factor(name: str, what: str, weight: Any, x: Array) -> Array | None:
    if weight is None:
        return None
    data = array_module(x).array(operand(weight).data, dtype=x.dtype)  # a copy: the caller may write into its own
    extra = x.ndim - data.ndim
    if extra < 0 or any(own not in (1, length) for own, length in zip(data.shape, x.shape[extra:], strict=True)):
        raise ValueError(f"{name}: {what} of shape {data.shape} does not broadcast to the logits' shape {x.shape}")
    return data
