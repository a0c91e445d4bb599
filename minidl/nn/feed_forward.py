"""FeedForward: two linear layers with GELU between them, the second half of a transformer's block."""

from __future__ import annotations

from minidl import functional as F
from minidl.nn.dropout import Dropout
from minidl.nn.linear import Linear
from minidl.nn.module import Module
from minidl.tensor import Tensor


class FeedForward(Module):
    """Two linear layers with GELU between them, applied to every position separately: (..., width) -> (..., width).

    Parameters
        width    numbers of a position
        hidden   numbers between the layers
        dropout  probability of dropping an element of the output
        bias     whether the layers have a bias
    """

    def __init__(self, width: int, hidden: int, dropout: float = 0.0, bias: bool = True) -> None:
        self.c_fc = Linear(width, hidden, bias)
        self.c_proj = Linear(hidden, width, bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.c_proj(F.gelu(self.c_fc(x))))
