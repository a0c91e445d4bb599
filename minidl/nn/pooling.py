"""Pooling layers: reduce each window of an image to one number."""

from __future__ import annotations

from typing import Any

from minidl import functional as F
from minidl.functional.pairs import Pair
from minidl.functional.pooling import Size
from minidl.nn.module import Module
from minidl.tensor import Tensor


class MaxPool2d(Module):
    """Max pooling, the maximum of every window: x (n, c, h, w) -> (n, c, oh, ow). The default stride is kernel_size.

    The parameters are those of `functional.max_pool2d`, in the order of PyTorch's layer.

    >>> import numpy as np
    >>> MaxPool2d(2)(Tensor(np.zeros((5, 3, 8, 8)))).shape
    (5, 3, 4, 4)
    """

    def __init__(
        self,
        kernel_size: Pair,
        stride: Pair | None = None,
        padding: Pair = 0,
        dilation: Pair = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        self.kernel_size, self.padding, self.dilation = kernel_size, padding, dilation
        self.stride = kernel_size if stride is None else stride
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, x: Any) -> Any:
        sliding = self.kernel_size, self.stride, self.padding, self.dilation
        return F.max_pool2d(x, *sliding, self.ceil_mode, self.return_indices)

    def extra_repr(self) -> str:
        sizes = f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"
        return f"{sizes}, dilation={self.dilation}, ceil_mode={self.ceil_mode}"


class AvgPool2d(Module):
    """Average pooling, the mean of every window: x (n, c, h, w) -> (n, c, oh, ow). The default stride is kernel_size.

    The parameters are those of `functional.avg_pool2d`.

    >>> import numpy as np
    >>> AvgPool2d(2)(Tensor(np.zeros((5, 3, 8, 8)))).shape
    (5, 3, 4, 4)
    """

    def __init__(
        self,
        kernel_size: Pair,
        stride: Pair | None = None,
        padding: Pair = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def forward(self, x: Any) -> Tensor:
        sliding = self.kernel_size, self.stride, self.padding
        return F.avg_pool2d(x, *sliding, self.ceil_mode, self.count_include_pad, self.divisor_override)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AdaptiveAvgPool2d(Module):
    """Average pooling over windows that give an output of a chosen size: x (n, c, h, w) -> (n, c, *output_size).

    Parameters
        output_size    one number, or a pair (vertical, horizontal); None keeps the image's size, 1 is global pooling

    >>> import numpy as np
    >>> AdaptiveAvgPool2d(1)(Tensor(np.zeros((5, 3, 8, 8)))).shape
    (5, 3, 1, 1)
    """

    def __init__(self, output_size: Size) -> None:
        self.output_size = output_size

    def forward(self, x: Any) -> Tensor:
        return F.adaptive_avg_pool2d(x, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool2d(Module):
    """Max pooling over the windows of `AdaptiveAvgPool2d`."""

    def __init__(self, output_size: Size, return_indices: bool = False) -> None:
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, x: Any) -> Any:
        return F.adaptive_max_pool2d(x, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"
