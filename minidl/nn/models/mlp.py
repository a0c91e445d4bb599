"""The multilayer perceptron: linear layers with ReLU between them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import prod
from typing import Any

from minidl import functional as F
from minidl.arguments import whole_number
from minidl.functional.bind import operand
from minidl.nn.container import ModuleList
from minidl.nn.linear import Linear
from minidl.nn.module import Module
from minidl.nn.stages import Stage
from minidl.tensor import Tensor


class MLP(Module):
    """Linear layers of the given sizes with ReLU between them: MLP(64, 128, 10), or MLP([64, 128, 10]).

    Shapes: x (n, ...), flattened to (n, sizes[0]) -> (n, sizes[-1]). Parameters: layers.0.weight, layers.0.bias, ...

    Raises
        ValueError    fewer than two sizes, samples of a size other than sizes[0]

    >>> import numpy as np
    >>> MLP(64, 128, 10)(np.zeros((5, 1, 8, 8), np.float32)).shape
    (5, 10)
    """

    def __init__(self, *sizes: int | Iterable[int]) -> None:
        flat = [size for item in sizes for size in (item if isinstance(item, Iterable) else (item,))]
        self.sizes = tuple(whole_number("MLP: each size", size, at_least=1) for size in flat)
        if len(self.sizes) < 2:
            raise ValueError(f"MLP: at least two sizes (inputs, ..., outputs) expected, got {self.sizes}")
        self.layers = ModuleList(Linear(n_in, n_out) for n_in, n_out in pairwise(self.sizes))

    def forward(self, x: Any) -> Tensor:
        first, *others = self.layers
        x = first(self._flattened(x))
        for layer in others:
            x = layer(F.relu(x))
        return x

    def stages(self) -> list[Stage]:
        def after_relu(layer: Module) -> Stage:
            return Stage(lambda x: layer(F.relu(x)), layer)

        first, *others = self.layers
        return [Stage(lambda x: first(self._flattened(x)), first), *map(after_relu, others)]

    def _flattened(self, x: Any) -> Tensor:
        shape = x.shape
        if prod(shape[1:]) != self.sizes[0]:
            raise ValueError(f"MLP: samples of {self.sizes[0]} numbers expected, got x of shape {shape}")
        return operand(x) if len(shape) == 2 else F.reshape(x, (shape[0], self.sizes[0]))
