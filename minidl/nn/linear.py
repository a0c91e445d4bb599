"""Linear: a matrix product and a bias. Embedding: a table of vectors, one per symbol. Flatten: images as rows."""

from __future__ import annotations

from math import sqrt
from typing import Any

from minidl import functional as F
from minidl.arguments import whole_number
from minidl.functional.linear import row_number
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


class Embedding(Module):
    """Look up one row of a table per symbol, as a linear layer does with one-hot inputs.

    Parameters
        num_embeddings    number of symbols, rows of the table
        embedding_dim     numbers per row
        padding_idx       symbol whose row starts as zeros and gets no gradient

    Shapes: indices (integers of any shape) -> (*indices.shape, embedding_dim); weight (num_embeddings, embedding_dim),
    initialised from the standard normal distribution.

    Raises
        TypeError     indices that are not integers
        IndexError    an index out of range

    >>> import numpy as np
    >>> Embedding(96, 8)(np.array([[3, 1, 4]])).shape
    (1, 3, 8)
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None) -> None:
        self.num_embeddings = whole_number("Embedding: num_embeddings", num_embeddings, at_least=0)
        self.embedding_dim = whole_number("Embedding: embedding_dim", embedding_dim, at_least=0)
        self.weight = Parameter(empty(self.num_embeddings, self.embedding_dim))
        init.normal_(self.weight)
        self.padding_idx = None if padding_idx is None else row_number(padding_idx, num_embeddings)
        if self.padding_idx is not None:
            self.weight.data[self.padding_idx] = 0

    def forward(self, indices: Any) -> Tensor:
        return F.embedding(indices, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class Flatten(Module):
    """Merge the axes from start_dim to end_dim (included) into one: (n, c, h, w) -> (n, c h w) by default.

    >>> import numpy as np
    >>> Flatten()(np.zeros((5, 3, 8, 8))).shape
    (5, 192)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Any) -> Tensor:
        return F.flatten(x, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
