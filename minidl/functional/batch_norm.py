"""Batch norm: every channel is normalised over the samples of a minibatch, on one node or on several."""

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
        out = batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps, reducer=reducer)
        return converted(out, dtype)
    image = x.data
    if image.ndim < 2:
        raise ValueError(
            f"batch_norm: x has shape {x.shape}, expected samples and channels, (n, c) or (n, c, ...); give one "
            "sample the axis of the batch with x.reshape(1, -1)"
        )
    channels = image.shape[1]
    module = kernels.array_module(image)
    scale = operand(weight) if weight is not None else Tensor(module.ones(channels, dtype=image.dtype))
    shift = operand(bias) if bias is not None else Tensor(module.zeros(channels, dtype=image.dtype))
    for name, array in (
        ("weight", scale), ("bias", shift), ("running_mean", running_mean), ("running_var", running_var)
    ):  # fmt: skip
        if array is not None and array.shape != (channels,):
            raise ValueError(
                f"batch_norm: {name} has shape {array.shape}, expected ({channels},): one number for each of the "
                f"{channels} channels, axis 1 of x {x.shape}"
            )
    if image.dtype is not scale.data.dtype:
        check_one_type("batch_norm", image, scale.data)
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
