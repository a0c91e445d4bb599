"""The convolutional layer: filters that slide over an image."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl import functional as F
from minidl.functional.convolution import Pair, pair
from minidl.nn.linear import reset_weight_and_bias
from minidl.nn.module import Module, Parameter
from minidl.tensor import Tensor


class Conv2d(Module):
    """Each of `out_channels` filters slides over the image and gives one output image.

    x: (n, in_channels, h, w) -> (n, out_channels, oh, ow), oh = (h + 2 padding - kernel_size) // stride + 1;
    weight (out_channels, in_channels, kh, kw), bias (out_channels,). Starts uniform in +-1/sqrt(in_channels kh kw).

    >>> Conv2d(3, 8, kernel_size=3, padding=1)(Tensor(np.zeros((2, 3, 32, 32), np.float32))).shape
    (2, 8, 32, 32)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Pair,
        stride: Pair = 1,
        padding: Pair = 0,
        *,
        bias: bool = True,
    ) -> None:
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride, self.padding = pair(kernel_size), pair(stride), pair(padding)
        self.weight = Parameter(np.empty((out_channels, in_channels, *self.kernel_size), np.float32))
        self.bias = Parameter(np.empty(out_channels, np.float32)) if bias else None
        reset_weight_and_bias(self.weight, self.bias)

    def forward(self, x: Any) -> Tensor:
        return F.conv2d(x, self.weight, self.bias, self.stride, self.padding)

    def extra_repr(self) -> str:
        padding = f", padding={self.padding}" if self.padding != (0, 0) else ""
        bias = ", bias=False" if self.bias is None else ""
        sizes = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        return sizes + padding + bias
