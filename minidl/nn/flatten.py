"""Flatten: turn an image into a vector."""

from __future__ import annotations

from typing import Any

from minidl import functional as F
from minidl.nn.module import Module
from minidl.tensor import Tensor


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
