"""Normalisation of each sample separately: layer norm over its features, group norm over groups of its channels."""

from __future__ import annotations

from typing import Any

from minidl import kernels
from minidl.functional.bind import operand
from minidl.functional.one_type import check_one_type
from minidl.kernels import Array
from minidl.tensor import Tensor, record


def layer_norm(x: Any, weight: Any, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """weight (x - mean) / sqrt(var + eps) + bias, with mean and variance over the last axes, those of `weight`.

    x: (..., *weight.shape); weight, bias: of one shape; bias may be None
    Errors: ValueError if x does not end with the shape of the weight, or the bias has another.
    Source: Ba, Kiros and Hinton, Layer Normalization (arXiv:1607.06450), section 3.1.

    >>> layer_norm([[1.0, 3.0], [10.0, 30.0]], weight=[1.0, 1.0], eps=0.0)
    Tensor([[-1.,  1.],
            [-1.,  1.]], float32)
    """
    if isinstance(weight, (int, tuple)) or (isinstance(weight, list) and all(isinstance(n, int) for n in weight)):
        raise TypeError(
            f"layer_norm: weight expected, got {weight!r}; the axes to normalise over are those of the weight, "
            "so PyTorch's normalized_shape is left out: layer_norm(x, weight, bias)"
        )
    x, weight = operand(x), operand(weight)
    bias = operand(bias) if bias is not None else None
    whole, w = x.data, weight.data
    if whole.shape[whole.ndim - w.ndim :] != w.shape or w.ndim == 0:
        raise ValueError(
            f"layer_norm: x has shape {x.shape}, which does not end with the weight's {weight.shape}; x is normalised "
            "over its last axes, those of the weight; for the last one alone, nn.LayerNorm(x.shape[-1])"
        )
    if bias is not None and bias.shape != w.shape:
        raise ValueError(f"layer_norm: the bias has shape {bias.shape}, it should have the weight's {weight.shape}")
    if whole.dtype is not w.dtype:
        check_one_type("layer_norm", whole, w)
    has_bias = bias is not None
    rows, flat_weight = whole.reshape(-1, w.size) if w.size else whole.reshape(0, 0), w.reshape(-1)
    out, mean, inverse_std = kernels.current().layer_norm(
        rows, flat_weight, None if bias is None else bias.data.reshape(-1), eps
    )

    def vjp(g: Array, needs: Any) -> tuple[Array, ...]:
        g = g.reshape(rows.shape)
        gx, gw, gb = kernels.current().layer_norm_backward(g, rows, mean, inverse_std, flat_weight)
        gradients = (gx.reshape(whole.shape), gw.reshape(w.shape))
        return (*gradients, gb.reshape(w.shape)) if has_bias else gradients

    return record(out.reshape(whole.shape), (x, weight) if bias is None else (x, weight, bias), vjp, saved=(0, 1))


def group_norm(x: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """weight (x - mean) / sqrt(var + eps) + bias, with mean and variance over each group of channels of each sample.

    x: (n, c) or (n, c, ...), where c is a multiple of num_groups; weight, bias: (c,) or None

    With one group, this is layer norm with a weight for each channel; with c groups, instance norm.
    Errors: ValueError for other shapes, and for one sample in groups of a single number.
    Source: Wu and He, Group Normalization (arXiv:1803.08494), section 3.

    >>> group_norm([[1.0, 3.0, 10.0, 30.0]], num_groups=2, eps=0.0)
    Tensor([[-1.,  1., -1.,  1.]], float32)
    """
    x = operand(x)
    image = x.data
    channels = image.shape[1] if image.ndim > 1 else 0
    if image.ndim < 2:
        raise ValueError(f"group_norm: x has shape {x.shape}, expected samples and channels, (n, c) or (n, c, ...)")
    if num_groups < 1 or channels % num_groups:
        raise ValueError(
            f"group_norm: num_groups must divide the {channels} channels, axis 1 of x {x.shape}; got {num_groups}"
        )
    module = kernels.array_module(image)
    scale = operand(weight) if weight is not None else Tensor(module.ones(channels, dtype=image.dtype))
    shift = operand(bias) if bias is not None else Tensor(module.zeros(channels, dtype=image.dtype))
    for name, array in (("weight", scale), ("bias", shift)):
        if array.shape != (channels,):
            raise ValueError(
                f"group_norm: {name} has shape {array.shape}, expected ({channels},): one number for each of the "
                f"{channels} channels, axis 1 of x {x.shape}"
            )
    if image.dtype is not scale.data.dtype:
        check_one_type("group_norm", image, scale.data)
    if image.size == num_groups:  # one sample, and one number in each group
        raise ValueError(
            f"group_norm: a group needs more than one value, got x of shape {x.shape} in {num_groups} groups: choose "
            "fewer groups"
        )
    w = scale.data
    out, mean, inverse_std = kernels.current().group_norm(image, num_groups, w, shift.data, eps)
    return record(
        out,
        (x, scale, shift),
        lambda g, needs: kernels.current().group_norm_backward(g, image, mean, inverse_std, num_groups, w),
        saved=(0, 1),
    )
