"""The convolutional layers: filters that slide over an image or a sequence."""

from __future__ import annotations

from typing import Any

from minidl import functional as F
from minidl.arguments import whole_number
from minidl.functional.convolution import Padding
from minidl.functional.pairs import Pair, Single, pair, single
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
        algorithm     how it is computed: None, "naive", "im2col", "fft", "winograd" or "auto", see `F.conv2d`

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
        algorithm: str | None = None,
    ) -> None:
        channels = _checked("Conv2d", in_channels, out_channels, groups, padding_mode)
        self.in_channels, self.out_channels, self.groups = channels
        self.kernel_size, self.stride, self.dilation = pair(kernel_size), pair(stride), pair(dilation)
        self.padding = padding if isinstance(padding, str) else pair(padding)
        self.weight = Parameter(empty(self.out_channels, self.in_channels // self.groups, *self.kernel_size))
        self.bias = Parameter(empty(self.out_channels)) if bias else None
        self.algorithm = algorithm
        reset_weight_and_bias(self.weight, self.bias)

    def forward(self, x: Any) -> Tensor:
        return self.convolve(x, self.weight, self.bias)

    def convolve(self, x: Any, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution of x with the layer's stride, padding, dilation and groups."""
        return F.conv2d(x, weight, bias, self.stride, self.padding, self.dilation, self.groups, self.algorithm)

    def extra_repr(self) -> str:
        return _described(self, {"padding": (0, 0), "dilation": (1, 1), "groups": 1, "algorithm": None})


class Conv1d(Module):
    """Convolution over sequences: the parameters are those of `Conv2d`, one number each.

    Shapes: x (n, in_channels, t) -> (n, out_channels, ot); weight (out_channels, in_channels / groups, k), bias
    (out_channels,). ot = (t + 2 padding - dilation (k - 1) - 1) // stride + 1.
    Weight and bias are initialised uniformly in +-1/sqrt(in_channels / groups k).

    >>> import numpy as np
    >>> Conv1d(3, 8, kernel_size=3, stride=2)(Tensor(np.zeros((2, 3, 9), np.float32))).shape
    (2, 8, 4)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Single,
        stride: Single = 1,
        padding: Single | str = 0,
        dilation: Single = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        algorithm: str | None = None,
    ) -> None:
        channels = _checked("Conv1d", in_channels, out_channels, groups, padding_mode)
        self.in_channels, self.out_channels, self.groups = channels
        self.kernel_size, self.stride, self.dilation = single(kernel_size), single(stride), single(dilation)
        self.padding = padding if isinstance(padding, str) else single(padding)
        self.weight = Parameter(empty(self.out_channels, self.in_channels // self.groups, *self.kernel_size))
        self.bias = Parameter(empty(self.out_channels)) if bias else None
        self.algorithm = algorithm
        reset_weight_and_bias(self.weight, self.bias)

    def forward(self, x: Any) -> Tensor:
        return F.conv1d(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups, self.algorithm
        )

    def extra_repr(self) -> str:
        return _described(self, {"padding": (0,), "dilation": (1,), "groups": 1, "algorithm": None})


def _checked(name: str, in_channels: int, out_channels: int, groups: int, padding_mode: str) -> tuple[int, int, int]:
    """The channels and groups of a layer. Errors: ValueError if they do not fit, or for another padding than zeros."""
    if padding_mode != "zeros":
        raise ValueError(f"{name} pads with zeros only, not with padding_mode={padding_mode!r}")
    in_channels = whole_number(f"{name}: in_channels", in_channels, at_least=0)
    out_channels = whole_number(f"{name}: out_channels", out_channels, at_least=0)
    groups = whole_number(f"{name}: groups", groups, at_least=1)
    if in_channels % groups or out_channels % groups:
        raise ValueError(
            f"{name}: groups={groups} must divide in_channels={in_channels} and out_channels={out_channels}"
        )
    return in_channels, out_channels, groups


def _described(layer: Conv2d | Conv1d, usual: dict[str, Any]) -> str:
    sizes = f"{layer.in_channels}, {layer.out_channels}, kernel_size={layer.kernel_size}, stride={layer.stride}"
    parts = [f"{name}={getattr(layer, name)!r}" for name, value in usual.items() if getattr(layer, name) != value]
    return ", ".join([sizes, *parts, *(["bias=False"] if layer.bias is None else [])])
