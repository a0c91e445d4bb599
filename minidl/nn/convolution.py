"""The convolutional layer: filters that slide over an image."""

from __future__ import annotations

from typing import Any

from minidl import functional as F
from minidl.arguments import whole_number
from minidl.functional.convolution import Padding
from minidl.functional.pairs import Pair, pair
from minidl.nn.linear import reset_weight_and_bias
from minidl.nn.module import Module
from minidl.nn.parameter import Parameter
from minidl.nn.placeholder import empty
from minidl.tensor import Tensor


class Conv2d(Module):
    """Convolution: each of `out_channels` filters slides over the image and computes one channel of the output.

    Parameters
        in_channels   channels of x
        out_channels  number of filters, channels of the output
        kernel_size   height and width of the filters in pixels: one number, or a pair (vertical, horizontal)
        stride        pixels from one window to the next: number or pair; 2 halves the image
        padding       pixels of zeros on each side: number or pair; "same" keeps the image's size, "valid" is 0
        dilation      distance of the pixels within a window: number or pair
        groups        groups of channels; a filter reads its group only: groups=in_channels is depthwise convolution
        bias          whether a bias is added
        padding_mode  "zeros"; PyTorch's other modes are refused

    Shapes: x (n, in_channels, h, w) -> (n, out_channels, oh, ow); weight (out_channels, in_channels / groups, kh, kw),
    bias (out_channels,). oh = (h + 2 padding - dilation (kh - 1) - 1) // stride + 1, and likewise ow.
    Weight and bias are initialised uniformly in +-1/sqrt(in_channels / groups kh kw).

    >>> import numpy as np
    >>> Conv2d(3, 8, kernel_size=3, padding=1)(Tensor(np.zeros((2, 3, 32, 32), np.float32))).shape
    (2, 8, 32, 32)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Pair,
        stride: Pair = 1,
        padding: Padding = 0,
        dilation: Pair = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f"Conv2d pads with zeros only, not with padding_mode={padding_mode!r}")
        in_channels = whole_number("Conv2d: in_channels", in_channels, at_least=0)
        out_channels = whole_number("Conv2d: out_channels", out_channels, at_least=0)
        groups = whole_number("Conv2d: groups", groups, at_least=1)
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"Conv2d: groups={groups} must divide in_channels={in_channels} and out_channels={out_channels}"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = pair(kernel_size), pair(stride), pair(dilation)
        self.padding = padding if isinstance(padding, str) else pair(padding)
        self.weight = Parameter(empty(out_channels, in_channels // groups, *self.kernel_size))
        self.bias = Parameter(empty(out_channels)) if bias else None
        reset_weight_and_bias(self.weight, self.bias)

    def forward(self, x: Any) -> Tensor:
        return F.conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        sizes = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        others = {"padding": (0, 0), "dilation": (1, 1), "groups": 1}
        parts = [f"{name}={getattr(self, name)!r}" for name, usual in others.items() if getattr(self, name) != usual]
        return ", ".join([sizes, *parts, *(["bias=False"] if self.bias is None else [])])
