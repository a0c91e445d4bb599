"""Dropout layers, switched on by `train()` and off by `eval()`."""

from __future__ import annotations

from typing import Any

from minidl import functional as F
from minidl import random
from minidl.arguments import real_number
from minidl.functional.bind import operand
from minidl.kernels import array_module
from minidl.nn.module import Module
from minidl.tensor import Tensor


class Dropout(Module):
    """In training, set each element to zero with probability p and divide the others by 1 - p.

    Parameters
        p    probability of zero, 0 to 1

    In evaluation the input is returned unchanged. The random numbers come from `minidl.random.generator()`; in a run of
    `parallel.train`, each call of each layer has its own stream (`minidl.random.ForwardPass`).

    References
        Srivastava et al., Dropout (JMLR 15, 2014).

    >>> Dropout(0.5).eval()(Tensor([1.0, 2.0]))
    Tensor([1., 2.], float32)
    """

    def __init__(self, p: float = 0.5) -> None:
        real_number(f"{type(self).__name__}: p", p, at_least=0, at_most=1)
        self.p = p

    def forward(self, x: Any) -> Tensor:
        if not self.training or self.p == 0:
            return F.dropout(x, self.p, training=False)
        return F.dropout(x, self.p, generator=random.layer_generator(self))

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Dropout2d(Dropout):
    """Dropout of whole channels of x (n, c, ...): neighbouring pixels are so similar that dropping single ones has
    little effect.

    References
        Tompson et al., Efficient Object Localization Using Convolutional Networks (arXiv:1411.4280), section 3.2.
    """

    def forward(self, x: Any) -> Tensor:
        x = operand(x)
        if not self.training or self.p == 0:
            return x
        channels = array_module(x.data).ones((*x.shape[:2], *(1 for _ in x.shape[2:])), dtype=x.dtype)
        return x * F.dropout(channels, self.p, generator=random.layer_generator(self))
