"""The linear layer: a matrix product and a bias."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from minidl import functional as F
from minidl.nn import init
from minidl.nn.module import Module, Parameter
from minidl.tensor import Tensor


class Linear(Module):
    """y = x weight^T + bias: every output is a weighted sum of all inputs.

    x: (..., in_features) -> (..., out_features); weight (out_features, in_features), bias (out_features,).
    Starts uniform in +-1/sqrt(in_features), as PyTorch's.

    >>> Linear(64, 10)(Tensor(np.zeros((5, 64), np.float32))).shape
    (5, 10)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(np.empty((out_features, in_features), np.float32))
        self.bias = Parameter(np.empty(out_features, np.float32)) if bias else None
        reset_weight_and_bias(self.weight, self.bias)

    def forward(self, x: Any) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def reset_weight_and_bias(weight: Tensor, bias: Tensor | None) -> None:
    """PyTorch's start of linear layers and convolutions: all uniform in +-1/sqrt(fan_in).

    Source: LeCun et al., Efficient BackProp (1998), section 4.6, less a factor sqrt(3): kept, so that runs compare.
    """
    init.kaiming_uniform_(weight, a=sqrt(5.0))
    if bias is not None:
        bound = 1 / sqrt(max(init.fans(weight)[0], 1))
        init.uniform_(bias, -bound, bound)
