"""Layers that count the arrays that are alive: the inputs and outputs of each, of all micro-batches in flight."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from minidl import functional as F
from minidl import nn
from minidl.data import Dataset, Splits
from minidl.tensor import Tensor


class WatchedLayer(nn.Module):
    """tanh(x weight^T); attributes: calls, and the most inputs and outputs that were alive in a forward."""

    def __init__(self, width: int) -> None:
        self.linear = nn.Linear(width, width, bias=False)
        self.calls = self.most_inputs = self.most_outputs = 0
        self._inputs: list[weakref.ref[Any]] = []
        self._outputs: list[weakref.ref[Any]] = []

    def forward(self, x: Any) -> Tensor:
        y = F.tanh(self.linear(x))
        self.calls += 1
        if self.training:
            self.most_inputs = max(self.most_inputs, alive(self._inputs, x.data))
            self.most_outputs = max(self.most_outputs, alive(self._outputs, y.data))
        return y


def alive(arrays: list[weakref.ref[Any]], new: np.ndarray) -> int:
    """How many of the arrays are alive, with one that may be new."""
    arrays[:] = [each for each in arrays if each() is not None]
    if all(each() is not new for each in arrays):
        arrays.append(weakref.ref(new))
    return len(arrays)


WIDTH = 4


def samples() -> Splits:
    rng = np.random.default_rng(0)
    data = Dataset(rng.normal(size=(64, WIDTH)).astype(np.float32), rng.integers(0, WIDTH, 64))
    return Splits(data, data)
