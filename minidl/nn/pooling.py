"""Pooling layers: each window of an image becomes one number."""

from __future__ import annotations

from typing import Any

from minidl import functional as F
from minidl.functional.pairs import Pair
from minidl.nn.module import Module
from minidl.tensor import Tensor


class _Pooling(Module):
    """What the two have in common: the size of the window, its stride and the padding."""

    def __init__(self, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0) -> None:
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxPool2d(_Pooling):
    """The maximum of every window: x (n, c, h, w) -> (n, c, oh, ow); the stride is the window's size by default.

    >>> import numpy as np
    >>> MaxPool2d(2)(Tensor(np.zeros((5, 3, 8, 8)))).shape
    (5, 3, 4, 4)
    """

    def forward(self, x: Any) -> Tensor:
        return F.max_pool2d(x, self.kernel_size, self.stride, self.padding)


class AvgPool2d(_Pooling):
    """The mean of every window: x (n, c, h, w) -> (n, c, oh, ow); the stride is the window's size by default.

    >>> import numpy as np
    >>> AvgPool2d(2)(Tensor(np.zeros((5, 3, 8, 8)))).shape
    (5, 3, 4, 4)
    """

    def forward(self, x: Any) -> Tensor:
        return F.avg_pool2d(x, self.kernel_size, self.stride, self.padding)
