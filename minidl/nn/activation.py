"""Nonlinearities as layers, for Sequential; in a `forward` call the functions F.relu, F.gelu, ... instead."""

from __future__ import annotations

from typing import Any

from minidl import functional as F
from minidl.arguments import one_of, real_number
from minidl.functional.bind import operand
from minidl.nn.module import Module
from minidl.tensor import Tensor


class Identity(Module):
    """Return x unchanged: a placeholder for a layer, whose arguments it accepts and ignores."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def forward(self, x: Any) -> Any:
        return x


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, x: Any) -> Tensor:
        return F.relu(x)


class LeakyReLU(Module):
    """x for x > 0, else negative_slope x, so that no unit stops learning.

    >>> LeakyReLU(0.1)(Tensor([-1.0, 2.0]))
    Tensor([-0.1,  2. ], float32)
    """

    def __init__(self, negative_slope: float = 0.01) -> None:
        real_number("LeakyReLU: negative_slope", negative_slope)
        self.negative_slope = negative_slope

    def forward(self, x: Any) -> Tensor:
        x = operand(x)
        return F.where(x > 0, x, self.negative_slope * x)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}"


class GELU(Module):
    """x Phi(x), where Phi is the normal distribution function: exact, or with approximate="tanh" the tanh form."""

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = one_of("GELU: approximate", approximate, ("none", "tanh"))

    def forward(self, x: Any) -> Tensor:
        return F.gelu(x, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(Module):
    """x sigmoid(x), also called swish."""

    def forward(self, x: Any) -> Tensor:
        return operand(x) * F.sigmoid(x)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x: Any) -> Tensor:
        return F.tanh(x)


class Sigmoid(Module):
    """1 / (1 + exp(-x)); BCEWithLogitsLoss includes it."""

    def forward(self, x: Any) -> Tensor:
        return F.sigmoid(x)


class Softmax(Module):
    """exp(x) / sum(exp(x)) along `dim`, the last axis by default; `F.cross_entropy` includes it."""

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: Any) -> Tensor:
        return F.softmax(x, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """log(softmax(x)) along `dim`, the last axis by default."""

    def __init__(self, dim: int = -1) -> None:
        self.dim = dim

    def forward(self, x: Any) -> Tensor:
        return F.log_softmax(x, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
