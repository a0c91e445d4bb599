"""Batch norm, on one rank or over the samples of several; layer norm; group norm."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from minidl import kernels
from minidl.functional.bind import operand
from minidl.functional.one_type import FLOAT32, check_one_type, converted
from minidl.grad_mode import recomputing
from minidl.kernels import Array
from minidl.kernels.reference.normalization import normalized, through_statistics
from minidl.kernels.sixteen_bit import is_sixteen_bit
from minidl.tape import Vjp
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
    if image.ndim < 2:
        raise ValueError(f"group_norm: x has shape {x.shape}, expected samples and channels, (n, c) or (n, c, ...)")
    channels = image.shape[1]
    if num_groups < 1 or channels % num_groups:
        raise ValueError(
            f"group_norm: num_groups must divide the {channels} channels, axis 1 of x {x.shape}; got {num_groups}"
        )
    scale, shift = _scale_and_shift("group_norm", image, weight, bias)
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


class StatisticsReducer(Protocol):
    """Joins the statistics of nodes that hold different samples of one minibatch; all nodes make the same calls."""

    counts: bool
    """Whether the samples of this node belong to the minibatch."""

    def join(self, count: int, mean: Array, var: Array) -> tuple[int, Array, Array]:
        """Return values per channel, mean and biased variance (c,) over all nodes, given those of this node."""

    def total(self, sums: np.ndarray) -> np.ndarray:
        """The sum of this array over all nodes, in backward."""


def batch_norm(
    x: Any,
    running_mean: Array | None,
    running_var: Array | None,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    reducer: StatisticsReducer | None = None,
) -> Tensor:
    """weight (x - mean) / sqrt(var + eps) + bias for every channel.

    In training, mean and variance are those of this minibatch, over all axes but the channels'; otherwise they are the
    running ones.

    Parameters
        x                          (n, c) or (n, c, ...)
        running_mean, running_var  arrays (c,), changed in place: in training they move towards this minibatch's mean
                                   and unbiased variance by `momentum`; None: not kept
        weight, bias               (c,); None: 1 and 0
        training                   whether the minibatch's own statistics are used
        momentum                   weight of this minibatch in the running statistics, 0 to 1
        eps                        added to the variance before the root
        reducer                    joins the statistics of several nodes in training; None: this node's samples alone

    Errors: ValueError for other shapes, for training with a single value per channel, and for evaluation without
    running statistics.
    Source: Ioffe and Szegedy, Batch Normalization (arXiv:1502.03167), algorithms 1 and 2.

    >>> batch_norm([[1.0, 10.0], [3.0, 30.0]], None, None, training=True, eps=0.0)  # two samples of two channels
    Tensor([[-1., -1.],
            [ 1.,  1.]], float32)
    """
    x = operand(x)
    if reducer is not None and is_sixteen_bit(x.dtype):  # statistics and sums in float32, as the kernels take them
        x, dtype = converted(x, FLOAT32), x.dtype
        weight, bias = (None if each is None else converted(operand(each), FLOAT32) for each in (weight, bias))
        out = batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps, reducer=reducer)
        return converted(out, dtype)
    image = x.data
    if image.ndim < 2:
        raise ValueError(
            f"batch_norm: x has shape {x.shape}, expected samples and channels, (n, c) or (n, c, ...); give one "
            "sample the axis of the batch with x.reshape(1, -1)"
        )
    channels = image.shape[1]
    scale, shift = _scale_and_shift("batch_norm", image, weight, bias, running_mean, running_var)
    kernel, w, count = kernels.current(), scale.data, 0
    if training:
        count = image.size // channels if channels else 0
        mean, var = kernel.channel_statistics(image)
        if reducer is not None:
            count, mean, var = reducer.join(count, mean, var)
        if count == 1:
            raise ValueError(
                f"batch_norm: training needs more than one value per channel, got x of shape {x.shape}: give a larger "
                "batch (a loader leaves out a last batch of one sample with drop_last=True; in parallel.train choose "
                "a batch_size that leaves no node with one sample), or call model.eval() before, so that the running "
                "statistics are used"
            )
        if running_mean is not None and running_var is not None and count and not recomputing.get():
            running_mean += momentum * (mean - running_mean)
            running_var += momentum * (var * (count / (count - 1)) - running_var)
    elif running_mean is None or running_var is None:
        raise ValueError(
            "batch_norm: running_mean and running_var are needed when training=False; with training=True the mean and "
            "variance of this batch are used"
        )
    else:
        mean, var = running_mean.copy(), running_var  # backward reads the mean, which training may have moved by then
    out, inverse_std = kernel.batch_norm(image, mean, var, w, shift.data, eps)
    vjp: Vjp
    if training and reducer is not None:
        vjp = _vjp_of_all_nodes(reducer, count, image, mean, inverse_std, w)
    else:
        vjp = lambda g, needs: kernels.current().batch_norm_backward(g, image, mean, inverse_std, w, training)  # noqa: E731
    return record(out, (x, scale, shift), vjp, saved=(0, 1))


def _vjp_of_all_nodes(
    reducer: StatisticsReducer, count: int, x: Array, mean: Array, inverse_std: Array, weight: Array
) -> Vjp:
    """The vjp in training on several nodes, where mean and variance depend on `count` values per channel in total."""
    axes, shape = (0, *range(2, x.ndim)), (-1,) + (1,) * (x.ndim - 2)
    counts = reducer.counts

    def vjp(g: Array, needs: Any) -> tuple[Array, ...]:
        add, xhat = kernels.uncounted("sum"), normalized(x, mean, inverse_std)
        g_bias, g_weight = add(g, axes), add(g * xhat, axes)
        sums = reducer.total(np.stack([kernels.to_numpy(g_bias), kernels.to_numpy(g_weight)]))
        mean_g, mean_gx = kernels.array_module(g).asarray(sums / max(count, 1)).reshape(2, *shape)
        factor = (weight * inverse_std).reshape(shape)
        gradient = through_statistics(g, xhat, factor, mean_g, mean_gx) if counts else g * factor
        return gradient, g_weight, g_bias

    return vjp


def _scale_and_shift(
    operation: str, image: Array, weight: Any, bias: Any, running_mean: Any = None, running_var: Any = None
) -> tuple[Tensor, Tensor]:
    """Weight and bias of the channels of an image (n, c, ...), ones and zeros for None.

    Raises ValueError unless they, and the running mean and variance, have one number for each channel.
    """
    module, channels = kernels.array_module(image), image.shape[1]
    scale = operand(weight) if weight is not None else Tensor(module.ones(channels, dtype=image.dtype))
    shift = operand(bias) if bias is not None else Tensor(module.zeros(channels, dtype=image.dtype))
    for name, array in (
        ("weight", scale), ("bias", shift), ("running_mean", running_mean), ("running_var", running_var)
    ):  # fmt: skip
        if array is not None and array.shape != (channels,):
            raise ValueError(
                f"{operation}: {name} has shape {array.shape}, expected ({channels},): one number for each of the "
                f"{channels} channels, axis 1 of x {image.shape}"
            )
    if image.dtype is not scale.data.dtype:
        check_one_type(operation, image, scale.data)
    return scale, shift
