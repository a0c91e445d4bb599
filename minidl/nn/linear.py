"""The linear layer: a matrix product and a bias."""

from __future__ import annotations

from math import sqrt
from typing import Any

from minidl import functional as F
from minidl.arguments import whole_number
from minidl.nn import init
from minidl.nn.module import Module
from minidl.nn.parameter import Parameter
from minidl.nn.placeholder import empty
from minidl.tensor import Tensor


class Linear(Module):
    """Linear layer, y = x weight^T + bias: every output is a weighted sum of all inputs.

    Parameters
        in_features     size of the last axis of x
        out_features    size of the last axis of y
        bias            whether a bias is added

    Shapes: x (..., in_features) -> y (..., out_features); weight (out_features, in_features), bias (out_features,).
    Weight and bias are initialised uniformly in +-1/sqrt(in_features), as in PyTorch.

    >>> import numpy as np
    >>> Linear(64, 10)(Tensor(np.zeros((5, 64), np.float32))).shape
    (5, 10)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.in_features = whole_number("Linear: in_features", in_features, at_least=0)
        self.out_features = whole_number("Linear: out_features", out_features, at_least=0)
        self.weight = Parameter(empty(self.out_features, self.in_features))
        self.bias = Parameter(empty(self.out_features)) if bias else None
        reset_weight_and_bias(self.weight, self.bias)

    def forward(self, x: Any) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def reset_weight_and_bias(weight: Tensor, bias: Tensor | None) -> None:
    """Initialise a linear layer or convolution as PyTorch does: uniformly in +-1/sqrt(fan_in).

    References
        LeCun et al., Efficient BackProp (1998), section 4.6; without its factor sqrt(3), as in PyTorch.
    """
    init.kaiming_uniform_(weight, a=sqrt(5.0))
    if bias is not None:
        bound = 1 / sqrt(max(init.fans(weight)[0], 1))
        init.uniform_(bias, -bound, bound)
