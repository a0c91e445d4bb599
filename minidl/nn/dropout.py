"""Dropout as a layer, which knows from `train()` and `eval()` whether to drop."""

from __future__ import annotations

from typing import Any

from minidl import functional as F
from minidl import random
from minidl.functional.bind import operand
from minidl.kernels import array_module
from minidl.nn.module import Module
from minidl.tensor import Tensor


class Dropout(Module):
    """In training, zero with probability p, else x / (1 - p); in evaluation, x.

    The random numbers come from `minidl.random.generator()`; in a run of `parallel.train`, every call of every layer
    has its own stream (`minidl.random.ForwardPass`).
    Errors: ValueError unless 0 <= p <= 1. Source: Srivastava et al., Dropout (JMLR 15, 2014).

    >>> Dropout(0.5).eval()(Tensor([1.0, 2.0]))
    Tensor([1., 2.], float32)
    """

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: the probability must lie in 0 <= p <= 1, got {p}")
        self.p = p

    def forward(self, x: Any) -> Tensor:
        if not self.training or self.p == 0:
            return F.dropout(x, self.p, training=False)
        return F.dropout(x, self.p, generator=random.layer_generator(self))

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Dropout2d(Dropout):
    """Dropout of whole channels: neighbouring pixels say much the same, so that dropping single ones changes little.

    x: (n, c, ...). Source: Tompson et al., Efficient Object Localization Using Convolutional Networks
    (arXiv:1411.4280), section 3.2.
    """

    def forward(self, x: Any) -> Tensor:
        x = operand(x)
        if not self.training or self.p == 0:
            return x
        channels = array_module(x.data).ones((*x.shape[:2], *(1 for _ in x.shape[2:])), dtype=x.dtype)
        return x * F.dropout(channels, self.p, generator=random.layer_generator(self))
