"""Recurrent layers: long short-term memory, over whole sequences and step by step."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from minidl import functional as F
from minidl import random
from minidl.arguments import real_number, whole_number
from minidl.functional.bind import operand
from minidl.nn import init
from minidl.nn.module import Module
from minidl.nn.parameter import Parameter
from minidl.nn.placeholder import empty
from minidl.tensor import Tensor

State = tuple[Any, Any]


class LSTM(Module):
    """Stacked layers of long short-term memory (LSTM): the outputs of one layer are the inputs of the next.

    Parameters
        input_size     features of x
        hidden_size    features of h and c
        num_layers     number of layers; each reads the outputs of the one below
        bias           whether the layers have bias_ih and bias_hh
        batch_first    True: x and the output are (n, t, features); False, the default as in PyTorch: (t, n, features)
        dropout        probability that an output of any layer but the last is set to zero in training
        bidirectional  add layers that read the sequence backwards; the outputs of both directions are concatenated

    The weights have PyTorch's names, shapes and order of the gates (i, f, g, o): for layer k weight_ih_lk (4 hidden,
    features), weight_hh_lk (4 hidden, hidden), bias_ih_lk and bias_hh_lk (4 hidden,); the backward direction adds
    "_reverse". All are initialised uniformly in +-1/sqrt(hidden_size). The equations are those of `F.lstm`.

    References
        Hochreiter and Schmidhuber, Long Short-Term Memory (1997).

    >>> lstm = LSTM(input_size=3, hidden_size=5, num_layers=2)
    >>> out, (h, c) = lstm(Tensor(np.zeros((7, 4, 3), np.float32)))
    >>> out.shape, h.shape, c.shape
    ((7, 4, 5), (2, 4, 5), (2, 4, 5))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
    ) -> None:
        input_size = whole_number("LSTM: input_size", input_size, at_least=1)
        hidden_size = whole_number("LSTM: hidden_size", hidden_size, at_least=1)
        num_layers = whole_number("LSTM: num_layers", num_layers, at_least=1)
        real_number("LSTM: dropout", dropout, at_least=0, at_most=1)
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, dropout, bidirectional
        self._directions = ("", "_reverse") if bidirectional else ("",)
        for layer in range(num_layers):
            features = input_size if layer == 0 else hidden_size * len(self._directions)
            for direction in self._directions:
                _add_weights(self, features, hidden_size, bias, f"_l{layer}{direction}")

    def forward(self, x: Any, hx: State | None = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return the outputs of the last layer at every step, and (h, c) of all layers after the last step.

        Parameters
            x     (t, n, input_size), (n, t, input_size) with batch_first, or one sequence (t, input_size)
            hx    (h, c) before the first step, zeros by default; each (num_layers, n, hidden_size), without n for one
                  sequence

        A bidirectional layer has two rows in h and c, the forward direction first, and outputs of 2 hidden_size.
        """
        x = operand(x)
        is_single = x.ndim == 2
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            axes = "n, t" if self.batch_first else "t, n"
            raise ValueError(f"LSTM: x ({axes}, {self.input_size}) or (t, {self.input_size}) expected, got {x.shape}")
        if is_single:
            x = x.reshape(len(x), 1, self.input_size)
        elif self.batch_first:
            x = x.transpose(0, 1)
        states = self._first_states(hx, x, is_single)
        last: list[tuple[Tensor, Tensor]] = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in self._directions:
                h, c = states[0][len(last)], states[1][len(last)]
                weights = [getattr(self, name) for name in _names(self.bias, f"_l{layer}{direction}")]
                out, h, c = F.lstm(x[::-1] if direction else x, h, c, *weights)
                outputs.append(out[::-1] if direction else out)
                last.append((h, c))
            x = outputs[0] if len(outputs) == 1 else F.cat(outputs, -1)
            if self.training and self.dropout and layer + 1 < self.num_layers:
                x = F.dropout(x, self.dropout, generator=random.layer_generator(self))
        h, c = (F.stack(list(rows)) for rows in zip(*last, strict=True))
        if is_single:
            return x[:, 0], (h[:, 0], c[:, 0])
        return x.transpose(0, 1) if self.batch_first else x, (h, c)

    def _first_states(self, hx: State | None, x: Tensor, is_single: bool) -> tuple[Any, Any]:
        rows, n = self.num_layers * len(self._directions), x.shape[1]
        if hx is None:
            zeros = Tensor(np.zeros((rows, n, self.hidden_size), x.dtype))
            return zeros, zeros
        if not isinstance(hx, (tuple, list)) or len(hx) != 2:
            raise TypeError(f"LSTM: the state is a pair (h, c), not {type(hx).__name__}")
        shape = (rows, self.hidden_size) if is_single else (rows, n, self.hidden_size)
        h, c = operand(hx[0]), operand(hx[1])
        if h.shape != shape or c.shape != shape:
            raise ValueError(f"LSTM: h and c {shape} expected, got {h.shape} and {c.shape}")
        return (h.reshape(rows, 1, -1), c.reshape(rows, 1, -1)) if is_single else (h, c)

    def extra_repr(self) -> str:
        options = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        given = [f"{name}={getattr(self, name)}" for name, default in options.items() if getattr(self, name) != default]
        return ", ".join([str(self.input_size), str(self.hidden_size), *given])


class LSTMCell(Module):
    """One step of long short-term memory, for loops in which an input depends on the previous output.

    Parameters
        input_size     features of x
        hidden_size    features of h and c
        bias           whether there are bias_ih and bias_hh

    The weights are PyTorch's: weight_ih (4 hidden, features), weight_hh (4 hidden, hidden), bias_ih and bias_hh
    (4 hidden,), with the gates in the order i, f, g, o.

    >>> cell = LSTMCell(3, 5)
    >>> h, c = cell(Tensor(np.zeros((4, 3), np.float32)))
    >>> h, c = cell(Tensor(np.ones((4, 3), np.float32)), (h, c))
    >>> h.shape, c.shape
    ((4, 5), (4, 5))
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        self.input_size = whole_number("LSTMCell: input_size", input_size, at_least=1)
        self.hidden_size = whole_number("LSTMCell: hidden_size", hidden_size, at_least=1)
        self.bias = bias
        _add_weights(self, self.input_size, self.hidden_size, bias, "")

    def forward(self, x: Any, hx: State | None = None) -> tuple[Tensor, Tensor]:
        """Return (h, c) after the step on x (n, input_size) or (input_size,); hx: (h, c) before it, default zeros."""
        x = operand(x)
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            raise ValueError(f"LSTMCell: x (n, {self.input_size}) or ({self.input_size},) expected, got {x.shape}")
        n, shape = x.size // self.input_size, (*x.shape[:-1], self.hidden_size)
        h, c = (operand(state) for state in (hx or (np.zeros(shape, x.dtype),) * 2))
        if h.shape != shape or c.shape != shape:
            raise ValueError(f"LSTMCell: h and c {shape} expected, got {h.shape} and {c.shape}")
        h, c = h.reshape(n, -1), c.reshape(n, -1)
        weights = [getattr(self, name) for name in _names(self.bias, "")]
        _, h, c = F.lstm(x.reshape(1, n, self.input_size), h, c, *weights)
        return h.reshape(shape), c.reshape(shape)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


def _names(bias: bool, ending: str) -> list[str]:
    return [name + ending for name in ("weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if bias else ()))]


def _add_weights(module: Module, features: int, hidden: int, bias: bool, ending: str) -> None:
    bound = 1 / sqrt(hidden)
    shapes = ((4 * hidden, features), (4 * hidden, hidden), (4 * hidden,), (4 * hidden,))
    for name, shape in zip(_names(bias, ending), shapes, strict=False):
        setattr(module, name, init.uniform_(Parameter(empty(*shape)), -bound, bound))
