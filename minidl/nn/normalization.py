"""Layers that shift and scale their input to mean 0 and variance 1, and learn which mean and scale are better."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl import functional as F
from minidl.nn.module import Module, Parameter
from minidl.tensor import Tensor


class BatchNorm2d(Module):
    """Normalise every channel over the batch and the image, then scale by weight and shift by bias.

    x: (n, num_features, h, w) -> the same shape; weight, bias: (num_features,), starting at 1 and 0. In training, mean
    and variance are this batch's, and the buffers running_mean and running_var (its unbiased variance) move towards
    them by `momentum` (None: they are the plain means over all batches so far); in evaluation the buffers are used.
    num_batches_tracked counts the training batches.
    Errors: ValueError for another shape, and for training on one value a channel.
    Source: Ioffe and Szegedy, Batch Normalization (arXiv:1502.03167), algorithms 1 and 2.

    >>> layer = BatchNorm2d(3)
    >>> layer(Tensor(np.ones((4, 3, 8, 8), np.float32))).shape, layer.num_batches_tracked.item()
    ((4, 3, 8, 8), 1)
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1) -> None:
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.weight = Parameter(np.ones(num_features, np.float32))
        self.bias = Parameter(np.zeros(num_features, np.float32))
        self.running_mean: Tensor
        self.running_var: Tensor
        self.num_batches_tracked: Tensor
        self.register_buffer("running_mean", np.zeros(num_features, np.float32))
        self.register_buffer("running_var", np.ones(num_features, np.float32))
        self.register_buffer("num_batches_tracked", np.zeros((), np.int64))

    def forward(self, x: Any) -> Tensor:
        if x.ndim != 4 or x.shape[1] != self.num_features:
            raise ValueError(f"BatchNorm2d: x (n, {self.num_features}, h, w) expected, got {x.shape}")
        mean, var = self.running_mean.data, self.running_var.data
        momentum = 1 / (self.num_batches_tracked.item() + 1) if self.momentum is None else self.momentum
        out = F.batch_norm(x, mean, var, self.weight, self.bias, self.training, momentum, self.eps)
        if self.training:
            self.num_batches_tracked.data += 1
        return out

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


class LayerNorm(Module):
    """Normalise every sample over its last axes, then scale by weight and shift by bias.

    x: (..., *normalized_shape) -> the same shape; weight, bias: normalized_shape, starting at 1 and 0; bias=False
    leaves the shift out. Errors: ValueError if x does not end with that shape.
    Source: Ba, Kiros and Hinton, Layer Normalization (arXiv:1607.06450), section 3.1.

    >>> out = LayerNorm(4)(Tensor([[1.0, 2.0, 3.0, 4.0]]))
    >>> round(out.mean().item(), 4), round((out * out).mean().item(), 4)
    (0.0, 1.0)
    """

    def __init__(self, normalized_shape: int | tuple[int, ...], eps: float = 1e-5, *, bias: bool = True) -> None:
        self.normalized_shape = (
            (normalized_shape,) if isinstance(normalized_shape, (int, np.integer)) else tuple(normalized_shape)
        )
        self.eps = eps
        self.weight = Parameter(np.ones(self.normalized_shape, np.float32))
        self.bias = Parameter(np.zeros(self.normalized_shape, np.float32)) if bias else None

    def forward(self, x: Any) -> Tensor:
        return F.layer_norm(x, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, bias={self.bias is not None}"
