"""Normalisation layers: shift and scale the input to mean 0 and variance 1, then to a learned mean and scale."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from minidl import functional as F
from minidl.arguments import real_number, whole_number
from minidl.functional.bind import operand
from minidl.functional.one_type import check_one_type, in_float32
from minidl.grad_mode import recomputing
from minidl.kernels import array_module
from minidl.nn.module import Module
from minidl.nn.parameter import Parameter
from minidl.tensor import Tensor


class BatchNorm(Module):
    """Base class of BatchNorm1d and BatchNorm2d: parameters and running statistics."""

    name = "BatchNorm"
    expected = "(n, {0}, ...)"  # the shape of the input, in messages
    dimensions: tuple[int, ...] = ()  # how many axes the input may have
    stays_float32 = ("running_mean", "running_var")

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
    ) -> None:
        num_features = whole_number(f"{self.name}: num_features", num_features, at_least=0)
        real_number(f"{self.name}: eps", eps)
        if momentum is not None:
            real_number(f"{self.name}: momentum", momentum, hint="None takes the mean over all batches")
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight = Parameter(np.ones(num_features, np.float32)) if affine else None
        self.bias = Parameter(np.zeros(num_features, np.float32)) if affine else None
        self.running_mean: Tensor
        self.running_var: Tensor
        self.num_batches_tracked: Tensor
        if track_running_stats:
            self.register_buffer("running_mean", np.zeros(num_features, np.float32))
            self.register_buffer("running_var", np.ones(num_features, np.float32))
            self.register_buffer("num_batches_tracked", np.zeros((), np.int64))

    def forward(self, x: Any) -> Tensor:
        self.check(x.shape)
        if not self.track_running_stats:
            return F.batch_norm(x, None, None, self.weight, self.bias, True, 0.0, self.eps)
        mean, var = self.running_mean.data, self.running_var.data
        out = F.batch_norm(x, mean, var, self.weight, self.bias, self.training, self.average_factor(), self.eps)
        if self.training and not recomputing.get():
            self.num_batches_tracked.data += 1
        return out

    def average_factor(self) -> float:
        """Return the weight of this batch in the running statistics."""
        return 1 / (self.num_batches_tracked.item() + 1) if self.momentum is None else self.momentum

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise ValueError for an input with a wrong number of axes or channels."""
        channels = self.num_features
        given = f"{self.name}: x {self.expected.format(channels)} expected, got {shape}"
        if len(shape) not in self.dimensions:
            if len(shape) + 1 in self.dimensions and shape[:1] == (channels,):
                raise ValueError(f"{given}, which has no axis for the batch: x[None] adds one")
            other = {2: "BatchNorm1d", 3: "BatchNorm1d", 4: "BatchNorm2d"}.get(len(shape))
            raise ValueError(given if other is None else f"{given}: {len(shape)} axes are for nn.{other}")
        if shape[1] != channels:
            raise ValueError(f"{given}: axis 1 has {shape[1]} channels; the layer for it is nn.{self.name}({shape[1]})")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(BatchNorm):
    """Normalise every feature over the batch (and the sequence), then scale by weight and shift by bias.

    Parameters
        num_features         number of features, or channels: length of axis 1 of the input
        eps                  added to the variance before the root
        momentum             weight of the newest batch in the running statistics; None: the mean over all batches
        affine               learn a weight and a bias per feature, initialised to 1 and 0
        track_running_stats  keep running statistics and evaluate with them; False: always use the batch's statistics

    Shapes: x (n, num_features) or (n, num_features, length) -> the same shape. In training, mean and variance are those
    of the batch, and the running statistics move towards them; evaluation uses the running statistics.

    Raises
        ValueError    an input of another shape, training on one value per channel

    References
        Ioffe and Szegedy, Batch Normalization (arXiv:1502.03167), algorithms 1 and 2.

    >>> BatchNorm1d(2, eps=0.0)(Tensor([[1.0, 10.0], [3.0, 30.0]]))
    Tensor([[-1., -1.],
            [ 1.,  1.]], float32, requires_grad=True)
    """

    name, expected, dimensions = "BatchNorm1d", "(n, {0}) or (n, {0}, length)", (2, 3)


class BatchNorm2d(BatchNorm):
    """Normalise every channel over the batch and the image, then scale by weight and shift by bias.

    Shapes: x (n, num_features, h, w) -> the same shape; weight and bias (num_features,), initialised to 1 and 0. In
    training, mean and variance are those of the batch, and the buffers running_mean and running_var (unbiased) move
    towards them by `momentum`; evaluation uses the buffers. num_batches_tracked counts the training batches.
    The parameters are those of `BatchNorm1d`.

    Raises
        ValueError    an input of another shape, training on one value per channel

    References
        Ioffe and Szegedy, Batch Normalization (arXiv:1502.03167), algorithms 1 and 2.

    >>> layer = BatchNorm2d(3)
    >>> layer(Tensor(np.ones((4, 3, 8, 8), np.float32))).shape, layer.num_batches_tracked.item()
    ((4, 3, 8, 8), 1)
    """

    name, expected, dimensions = "BatchNorm2d", "(n, {0}, h, w)", (4,)


class LayerNorm(Module):
    """Normalise every sample over its last axes, then scale by weight and shift by bias.

    Parameters
        normalized_shape      lengths of the last axes, over which is normalised; or one length
        eps                   added to the variance before the root
        elementwise_affine    learn weight and bias
        bias                  learn the bias; False: the weight only

    Shapes: x (..., *normalized_shape) -> the same shape; weight and bias have normalized_shape and are initialised to
    1 and 0. Raises ValueError if the shape of x does not end with normalized_shape.

    References
        Ba, Kiros and Hinton, Layer Normalization (arXiv:1607.06450), section 3.1.

    >>> out = LayerNorm(4)(Tensor([[1.0, 2.0, 3.0, 4.0]]))
    >>> round(out.mean().item(), 4), round((out * out).mean().item(), 4)
    (0.0, 1.0)
    """

    def __init__(
        self,
        normalized_shape: int | tuple[int, ...],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
    ) -> None:
        self.normalized_shape = _lengths("LayerNorm", normalized_shape)
        real_number("LayerNorm: eps", eps)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.weight = Parameter(np.ones(self.normalized_shape, np.float32)) if elementwise_affine else None
        self.bias = Parameter(np.zeros(self.normalized_shape, np.float32)) if elementwise_affine and bias else None

    def forward(self, x: Any) -> Tensor:
        if self.weight is not None:
            return F.layer_norm(x, self.weight, self.bias, self.eps)
        x = operand(x)
        return F.layer_norm(x, array_module(x.data).ones(self.normalized_shape, dtype=x.dtype), None, self.eps)

    def extra_repr(self) -> str:
        affine = "" if self.elementwise_affine else ", elementwise_affine=False"
        return f"{self.normalized_shape}, eps={self.eps}{affine}, bias={self.bias is not None}"


class RMSNorm(Module):
    """Divide every sample by the root of its mean square over the last axes, then scale by weight.

    Parameters
        normalized_shape      lengths of the last axes, over which the mean is taken; or one length
        eps                   added to the mean square before the root; None: the distance from 1 to the next number in
                              the type of x, in float32 for 16 bits
        elementwise_affine    learn a weight, initialised to 1

    Shapes: x (..., *normalized_shape) -> the same shape. Raises ValueError if the shape of x does not end with
    normalized_shape.

    References
        Zhang and Sennrich, Root Mean Square Layer Normalization (arXiv:1910.07467), equation 4.

    >>> RMSNorm(2)(Tensor([[1.0, 7.0]]))
    Tensor([[0.2, 1.4]], float32, requires_grad=True)
    """

    def __init__(
        self, normalized_shape: int | tuple[int, ...], eps: float | None = None, elementwise_affine: bool = True
    ) -> None:
        self.normalized_shape = _lengths("RMSNorm", normalized_shape)
        self.eps = None if eps is None else real_number("RMSNorm: eps", eps)
        self.elementwise_affine = elementwise_affine
        self.weight = Parameter(np.ones(self.normalized_shape, np.float32)) if elementwise_affine else None

    def forward(self, x: Any) -> Tensor:
        x, axes = operand(x), len(self.normalized_shape)
        if x.shape[-axes:] != self.normalized_shape:
            raise ValueError(f"RMSNorm: x (..., {', '.join(map(str, self.normalized_shape))}) expected, got {x.shape}")
        if self.weight is not None:
            check_one_type("RMSNorm", x.data, self.weight.data)
        out = _by_root_mean_square(x, tuple(range(-axes, 0)), self.eps)
        return out if self.weight is None else out * self.weight

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


def _lengths(layer: str, normalized_shape: int | Iterable[int]) -> tuple[int, ...]:
    lengths = normalized_shape if isinstance(normalized_shape, Iterable) else (normalized_shape,)
    return tuple(whole_number(f"{layer}: normalized_shape", length, at_least=0) for length in lengths)


@in_float32("x")
def _by_root_mean_square(x: Tensor, axes: tuple[int, ...], eps: float | None) -> Tensor:
    mean_square = (x * x).mean(axis=axes, keepdims=True)
    return x * (mean_square + (np.finfo(x.dtype).eps if eps is None else eps)) ** -0.5


class GroupNorm(Module):
    """Normalise every group of channels of each sample, then scale by weight and shift by bias.

    Parameters
        num_groups      number of groups, a divisor of num_channels
        num_channels    length of axis 1 of the input
        eps             added to the variance before the root
        affine          learn a weight and a bias per channel, initialised to 1 and 0

    Shapes: x (n, num_channels, ...) -> the same shape. Samples do not depend on each other, so that the size of the
    batch has no effect.

    Raises
        ValueError    num_groups does not divide num_channels, x has another number of channels

    References
        Wu and He, Group Normalization (arXiv:1803.08494), section 3.

    >>> GroupNorm(2, 4, eps=0.0, affine=False)(Tensor([[1.0, 3.0, 10.0, 30.0]]))
    Tensor([[-1.,  1., -1.,  1.]], float32)
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        num_groups = whole_number("GroupNorm: num_groups", num_groups, at_least=1)
        num_channels = whole_number("GroupNorm: num_channels", num_channels, at_least=0)
        real_number("GroupNorm: eps", eps)
        if num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: num_groups must divide num_channels, got {num_groups} groups of {num_channels} channels"
            )
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self.weight = Parameter(np.ones(num_channels, np.float32)) if affine else None
        self.bias = Parameter(np.zeros(num_channels, np.float32)) if affine else None

    def forward(self, x: Any) -> Tensor:
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise ValueError(f"GroupNorm: x (n, {self.num_channels}, ...) expected, got {x.shape}")
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
