"""Recurrent layers, simple ones and long short-term memory, over whole sequences and step by step.

A step needs the output of the step before it, so that none can be computed earlier: `minidl.depth` shows it.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from minidl import functional as F
from minidl import random
from minidl.arguments import one_of, real_number, whole_number
from minidl.functional.bind import operand
from minidl.nn import init
from minidl.nn.module import Module
from minidl.nn.parameter import Parameter
from minidl.nn.placeholder import empty
from minidl.tensor import Tensor

State = Any  # h of a simple layer, (h, c) of long short-term memory


class Recurrent(Module):
    """What RNN and LSTM share: layers on top of each other, two directions, and the order of the axes."""

    GATES = 1  # blocks of `hidden_size` rows in every weight
    STATES = 1  # tensors that pass from step to step

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
        name = type(self).__name__
        input_size = whole_number(f"{name}: input_size", input_size, at_least=1)
        hidden_size = whole_number(f"{name}: hidden_size", hidden_size, at_least=1)
        num_layers = whole_number(f"{name}: num_layers", num_layers, at_least=1)
        real_number(f"{name}: dropout", dropout, at_least=0, at_most=1)
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, dropout, bidirectional
        self._directions = ("", "_reverse") if bidirectional else ("",)
        for layer in range(num_layers):
            features = input_size if layer == 0 else hidden_size * len(self._directions)
            for direction in self._directions:
                _add_weights(self, self.GATES, features, hidden_size, bias, f"_l{layer}{direction}")

    def steps(self, x: Tensor, states: list[Tensor], weights: list[Tensor]) -> tuple[Tensor, ...]:
        """One direction of one layer: the outputs of all steps, and the states after the last one."""
        raise NotImplementedError

    def forward(self, x: Any, hx: State = None) -> tuple[Tensor, Any]:
        """Return the outputs of the last layer at every step, and the state of all layers after the last step.

        Parameters
            x     (t, n, input_size), (n, t, input_size) with batch_first, or one sequence (t, input_size)
            hx    the state before the first step, zeros by default: h of an RNN, (h, c) of an LSTM; each
                  (num_layers, n, hidden_size), without n for one sequence

        A bidirectional layer has two rows in the state, the forward direction first, and outputs of 2 hidden_size.
        """
        x = operand(x)
        is_single = x.ndim == 2
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            axes, name = "n, t" if self.batch_first else "t, n", type(self).__name__
            raise ValueError(f"{name}: x ({axes}, {self.input_size}) or (t, {self.input_size}) expected, got {x.shape}")
        if is_single:
            x = x.reshape(len(x), 1, self.input_size)
        elif self.batch_first:
            x = x.transpose(0, 1)
        states = self._first_states(hx, x, is_single)
        last: list[tuple[Tensor, ...]] = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in self._directions:
                before = [state[len(last)] for state in states]
                weights = [getattr(self, name) for name in _names(self.bias, f"_l{layer}{direction}")]
                out, *after = self.steps(x[::-1] if direction else x, before, weights)
                outputs.append(out[::-1] if direction else out)
                last.append(tuple(after))
            x = outputs[0] if len(outputs) == 1 else F.cat(outputs, -1)
            if self.training and self.dropout and layer + 1 < self.num_layers:
                x = F.dropout(x, self.dropout, generator=random.layer_generator(self))
        final = tuple(F.stack(list(rows)) for rows in zip(*last, strict=True))
        if is_single:
            x, final = x[:, 0], tuple(state[:, 0] for state in final)
        elif self.batch_first:
            x = x.transpose(0, 1)
        return x, final if self.STATES == 2 else final[0]

    def _first_states(self, hx: State, x: Tensor, is_single: bool) -> list[Any]:
        rows, n, name = self.num_layers * len(self._directions), x.shape[1], type(self).__name__
        if hx is None:
            return [Tensor(np.zeros((rows, n, self.hidden_size), x.dtype))] * self.STATES
        if self.STATES == 2 and (not isinstance(hx, (tuple, list)) or len(hx) != 2):
            raise TypeError(f"{name}: the state is a pair (h, c), not {type(hx).__name__}")
        shape = (rows, self.hidden_size) if is_single else (rows, n, self.hidden_size)
        states = [operand(state) for state in (hx if self.STATES == 2 else [hx])]
        if any(state.shape != shape for state in states):
            given = " and ".join(str(state.shape) for state in states)
            raise ValueError(f"{name}: {'h and c' if self.STATES == 2 else 'h'} {shape} expected, got {given}")
        return [state.reshape(rows, 1, -1) for state in states] if is_single else states

    def extra_repr(self) -> str:
        options = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        given = [f"{name}={getattr(self, name)}" for name, default in options.items() if getattr(self, name) != default]
        return ", ".join([str(self.input_size), str(self.hidden_size), *given])


class RNN(Recurrent):
    """Stacked simple recurrent layers: h = tanh(x_t weight_ih^T + bias_ih + h weight_hh^T + bias_hh) at each step.

    Parameters
        input_size     features of x
        hidden_size    features of h
        num_layers     number of layers; each reads the outputs of the one below
        nonlinearity   "tanh" or "relu"
        bias, batch_first, dropout, bidirectional   as for `LSTM`

    The weights have PyTorch's names: for layer k weight_ih_lk (hidden, features), weight_hh_lk (hidden, hidden),
    bias_ih_lk and bias_hh_lk (hidden,). All are initialised uniformly in +-1/sqrt(hidden_size).

    References
        Elman, Finding Structure in Time (1990).

    >>> rnn = RNN(input_size=3, hidden_size=5)
    >>> out, h = rnn(Tensor(np.zeros((7, 4, 3), np.float32)))
    >>> out.shape, h.shape
    ((7, 4, 5), (1, 4, 5))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional)
        self.nonlinearity = one_of("RNN: nonlinearity", nonlinearity, ("tanh", "relu"))

    def steps(self, x: Tensor, states: list[Tensor], weights: list[Tensor]) -> tuple[Tensor, ...]:
        return F.rnn(x, states[0], *weights, nonlinearity=self.nonlinearity)  # type: ignore[misc, arg-type]

    def extra_repr(self) -> str:
        return super().extra_repr() + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")


class LSTM(Recurrent):
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

    GATES, STATES = 4, 2

    def steps(self, x: Tensor, states: list[Tensor], weights: list[Tensor]) -> tuple[Tensor, ...]:
        return F.lstm(x, *states, *weights)


class RNNCell(Module):
    """One step of a simple recurrent layer, for loops in which an input depends on the previous output.

    Parameters
        input_size     features of x
        hidden_size    features of h
        bias           whether there are bias_ih and bias_hh
        nonlinearity   "tanh" or "relu"

    >>> cell = RNNCell(3, 5)
    >>> h = cell(Tensor(np.zeros((4, 3), np.float32)))
    >>> cell(Tensor(np.ones((4, 3), np.float32)), h).shape
    (4, 5)
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh") -> None:
        self.input_size = whole_number("RNNCell: input_size", input_size, at_least=1)
        self.hidden_size = whole_number("RNNCell: hidden_size", hidden_size, at_least=1)
        self.nonlinearity = one_of("RNNCell: nonlinearity", nonlinearity, ("tanh", "relu"))
        self.bias = bias
        _add_weights(self, 1, self.input_size, self.hidden_size, bias, "")

    def forward(self, x: Any, hx: Any = None) -> Tensor:
        """Return h after the step on x (n, input_size) or (input_size,); hx: h before it, default zeros."""
        (h,) = _cell_step(self, 1, x, None if hx is None else [hx])
        return h

    def extra_repr(self) -> str:
        ending = "" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}"
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False") + ending


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
        _add_weights(self, 4, self.input_size, self.hidden_size, bias, "")

    def forward(self, x: Any, hx: State = None) -> tuple[Tensor, Tensor]:
        """Return (h, c) after the step on x (n, input_size) or (input_size,); hx: (h, c) before it, default zeros."""
        h, c = _cell_step(self, 2, x, hx)
        return h, c

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


def _cell_step(cell: RNNCell | LSTMCell, count: int, x: Any, hx: Any) -> list[Tensor]:
    """The `count` states of a cell after one step: that of a sequence of length 1."""
    x, name = operand(x), type(cell).__name__
    if x.ndim not in (1, 2) or x.shape[-1] != cell.input_size:
        raise ValueError(f"{name}: x (n, {cell.input_size}) or ({cell.input_size},) expected, got {x.shape}")
    n, shape = x.size // cell.input_size, (*x.shape[:-1], cell.hidden_size)
    states = [operand(state) for state in (hx or (np.zeros(shape, x.dtype),) * count)]
    if any(state.shape != shape for state in states):
        given = " and ".join(str(state.shape) for state in states)
        raise ValueError(f"{name}: {'h and c' if count == 2 else 'h'} {shape} expected, got {given}")
    rows = [state.reshape(n, -1) for state in states]
    weights = [getattr(cell, name) for name in _names(cell.bias, "")]
    sequence = x.reshape(1, n, cell.input_size)
    if isinstance(cell, RNNCell):
        _, *after = F.rnn(sequence, rows[0], *weights, nonlinearity=cell.nonlinearity)  # type: ignore[misc]
    else:
        _, *after = F.lstm(sequence, *rows, *weights)
    return [state.reshape(shape) for state in after]


def _names(bias: bool, ending: str) -> list[str]:
    return [name + ending for name in ("weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if bias else ()))]


def _add_weights(module: Module, gates: int, features: int, hidden: int, bias: bool, ending: str) -> None:
    bound, rows = 1 / sqrt(hidden), gates * hidden
    shapes = ((rows, features), (rows, hidden), (rows,), (rows,))
    for name, shape in zip(_names(bias, ending), shapes, strict=False):
        setattr(module, name, init.uniform_(Parameter(empty(*shape)), -bound, bound))
