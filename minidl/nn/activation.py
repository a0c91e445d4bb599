"""Nonlinearities as layers, for Sequential; within a `forward`, the functions F.relu, F.gelu and F.tanh do the same."""

from __future__ import annotations

from typing import Any

from minidl import functional as F
from minidl.nn.module import Module
from minidl.tensor import Tensor


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, x: Any) -> Tensor:
        return F.relu(x)


class GELU(Module):
    """x Phi(x), Phi the normal distribution function (exact, not the approximation by tanh)."""

    def forward(self, x: Any) -> Tensor:
        return F.gelu(x)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, x: Any) -> Tensor:
        return F.tanh(x)
