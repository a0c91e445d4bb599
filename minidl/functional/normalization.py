"""Normalisation: batch norm over the samples, layer norm over the features."""

from __future__ import annotations

from typing import Any

from minidl import kernels
from minidl.functional.bind import operand
from minidl.functional.one_type import check_one_type
from minidl.kernels import Array
from minidl.tensor import Tensor, record


def batch_norm(
    x: Any,
    running_mean: Array | None,
    running_var: Array | None,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """weight (x - mean) / sqrt(var + eps) + bias for every channel.

    x: (n, c) or (n, c, ...); weight, bias: (c,). In training, mean and variance are those of this batch, over all axes
    but the channel's, and the running ones (arrays, changed in place) move towards them by `momentum`, the variance
    unbiased; otherwise the running ones are used.
    Errors: ValueError for other shapes, for training with a single value a channel, and for evaluation without running
    statistics.
    Source: Ioffe and Szegedy, Batch Normalization (arXiv:1502.03167), algorithms 1 and 2.

    >>> batch_norm([[1.0, 10.0], [3.0, 30.0]], None, None, training=True, eps=0.0)  # two samples of two channels
    Tensor([[-1., -1.],
            [ 1.,  1.]], float32)
    """
    x = operand(x)
    image = x.data
    if image.ndim < 2:
        raise ValueError(f"batch_norm: x (n, c, ...) expected, got {x.shape}")
    channels = image.shape[1]
    module = kernels.array_module(image)
    scale = operand(weight) if weight is not None else Tensor(module.ones(channels, dtype=image.dtype))
    shift = operand(bias) if bias is not None else Tensor(module.zeros(channels, dtype=image.dtype))
    statistics = [array for array in (running_mean, running_var) if array is not None]
    if any(array.shape != (channels,) for array in (scale, shift, *statistics)):
        raise ValueError(
            f"batch_norm: weight, bias, running_mean and running_var have one number for each of the {channels} "
            f"channels, got shapes {', '.join(str(array.shape) for array in (scale, shift, *statistics))}"
        )
    if image.dtype is not scale.data.dtype:
        check_one_type("batch_norm", image, scale.data)
    kernel = kernels.current()
    if training:
        count = image.size // channels if channels else 0
        if count == 1:
            raise ValueError(f"batch_norm: training needs more than one value a channel, got x of shape {x.shape}")
        mean, var = kernel.channel_statistics(image)
        if running_mean is not None and running_var is not None and count:
            running_mean += momentum * (mean - running_mean)
            running_var += momentum * (var * (count / (count - 1)) - running_var)
    elif running_mean is None or running_var is None:
        raise ValueError("batch_norm: running_mean and running_var are needed when training=False")
    else:
        mean, var = running_mean, running_var
    w = scale.data
    out, normalized, inverse_std = kernel.batch_norm(image, mean, var, w, shift.data, eps)
    return record(
        out,
        (x, scale, shift),
        lambda g, needs: kernels.current().batch_norm_backward(g, normalized, inverse_std, w, training),
        saved=(1,),
    )


def layer_norm(x: Any, weight: Any, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """weight (x - mean) / sqrt(var + eps) + bias, mean and variance taken over the axes of `weight`, the last ones.

    x: (..., *weight.shape); weight, bias: of one shape, bias may be None.
    Errors: ValueError if x does not end with the shape of the weight, or the bias has another.
    Source: Ba, Kiros and Hinton, Layer Normalization (arXiv:1607.06450), section 3.1.

    >>> layer_norm([[1.0, 3.0], [10.0, 30.0]], weight=[1.0, 1.0], eps=0.0)
    Tensor([[-1.,  1.],
            [-1.,  1.]], float32)
    """
    x, weight = operand(x), operand(weight)
    bias = operand(bias) if bias is not None else None
    whole, w = x.data, weight.data
    if whole.shape[whole.ndim - w.ndim :] != w.shape or w.ndim == 0:
        raise ValueError(f"layer_norm: x has shape {x.shape}, which does not end with the weight's {weight.shape}")
    if bias is not None and bias.shape != w.shape:
        raise ValueError(f"layer_norm: the bias has shape {bias.shape}, it should have the weight's {weight.shape}")
    if whole.dtype is not w.dtype:
        check_one_type("layer_norm", whole, w)
    rows, flat_weight = whole.reshape(-1, w.size) if w.size else whole.reshape(0, 0), w.reshape(-1)
    out, normalized, inverse_std = kernels.current().layer_norm(
        rows, flat_weight, None if bias is None else bias.data.reshape(-1), eps
    )

    def vjp(g: Array, needs: Any) -> tuple[Array, ...]:
        g = g.reshape(rows.shape)
        gx, gw, gb = kernels.current().layer_norm_backward(g, normalized, inverse_std, flat_weight)
        gradients = (gx.reshape(whole.shape), gw.reshape(w.shape))
        return gradients if bias is None else (*gradients, gb.reshape(w.shape))

    return record(out.reshape(whole.shape), (x, weight) if bias is None else (x, weight, bias), vjp, saved=(1,))
