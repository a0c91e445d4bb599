"""Recurrent layers over a sequence: a simple one, step by step, and long short-term memory, as one node."""

from __future__ import annotations

from typing import Any

from minidl import kernels
from minidl.arguments import one_of
from minidl.functional.bind import operand
from minidl.functional.elementwise import relu, tanh
from minidl.functional.linear import linear
from minidl.functional.one_type import autocast_dtype, in_one_type
from minidl.functional.shapes import stack
from minidl.kernels import Array, array_module
from minidl.tape import OUTPUT
from minidl.tensor import Tensor, record


def rnn(
    x: Any,
    h: Any,
    weight_ih: Any,
    weight_hh: Any,
    bias_ih: Any = None,
    bias_hh: Any = None,
    nonlinearity: str = "tanh",
) -> tuple[Tensor, Tensor]:
    """A simple recurrent layer: h = tanh(x_t weight_ih^T + bias_ih + h weight_hh^T + bias_hh) at each step t.

    Parameters
        x                 (t, n, features): t >= 1 steps of n sequences
        h                 (n, hidden): output before the first step
        weight_ih         (hidden, features)
        weight_hh         (hidden, hidden)
        bias_ih, bias_hh  (hidden,) each, or None for both
        nonlinearity      "tanh", or "relu" in its place

    Returns the outputs of all steps, (t, n, hidden), and the last one, (n, hidden).
    Errors: ValueError if the shapes do not fit.
    Source: Elman, Finding Structure in Time (1990).

    One matrix product serves the inputs of all steps; the other has to wait for the step before.
    """
    x, h, weight_ih, weight_hh = operand(x), operand(h), operand(weight_ih), operand(weight_hh)
    activation = {"tanh": tanh, "relu": relu}[one_of("rnn: nonlinearity", nonlinearity, ("tanh", "relu"))]
    biases = _both_or_none("rnn", bias_ih, bias_hh)
    _check_shapes("rnn", 1, x, [h], weight_ih, weight_hh, biases)
    inputs = linear(x, weight_ih, *biases[:1])
    outputs = []
    for t in range(x.shape[0]):
        h = activation(inputs[t] + linear(h, weight_hh, *biases[1:]))
        outputs.append(h)
    return stack(outputs), h


def lstm(
    x: Any, h: Any, c: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any = None, bias_hh: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """A layer of long short-term memory: at each step, gates decide what the cell forgets, stores and outputs.

        i, f, g, o = x_t weight_ih^T + bias_ih + h weight_hh^T + bias_hh, in four blocks of hidden columns
        c = sigmoid(f) c + sigmoid(i) tanh(g)
        h = sigmoid(o) tanh(c)

    Parameters
        x                 (t, n, features): t >= 1 steps of n sequences
        h, c              (n, hidden): output and cell before the first step
        weight_ih         (4 hidden, features)
        weight_hh         (4 hidden, hidden)
        bias_ih, bias_hh  (4 hidden,) each, or None for both

    Returns the outputs h of all steps, (t, n, hidden), and h and c after the last step, (n, hidden) each.
    Errors: ValueError if the shapes do not fit, TypeError for operands of different types.
    Source: Hochreiter and Schmidhuber, Long Short-Term Memory (1997); Gers et al. (2000) for the forget gate.

    Optimizations:
    * one node; one matrix product for the inputs of all steps, and one for each gradient of a weight;
    * each step keeps only its four gates, its cell and its output.
    """
    operands: list[Any] = [operand(x), operand(h), operand(c), operand(weight_ih), operand(weight_hh)]
    operands += _both_or_none("lstm", bias_ih, bias_hh)
    if autocast_dtype.get() is not None or len({tensor._data.dtype for tensor in operands}) > 1:
        operands = in_one_type("lstm", *operands)
    inputs, first_h, first_c, w_ih, w_hh, *biases = [tensor.data for tensor in operands]
    _check_shapes("lstm", 4, inputs, [first_h, first_c], w_ih, w_hh, biases)
    (steps, n, features), hidden = inputs.shape, w_hh.shape[1]
    kernel, module = kernels.current(), array_module(inputs)
    rows = inputs.reshape(steps * n, features)
    gates = kernel.linear(rows, w_ih, biases[0] + biases[1] if biases else None).reshape(steps, n, 4 * hidden)
    states = module.empty((2, steps, n, hidden), dtype=inputs.dtype)  # outputs, cells
    h_t, c_t, transposed = first_h, first_c, w_hh.T
    for t in range(steps):
        gates[t] += kernel.matmul(h_t, transposed)
        gates[t], h_t, c_t = kernel.lstm_cell(gates[t], c_t)
        states[0, t], states[1, t] = h_t, c_t

    def vjp(g: Array, needs: Any) -> tuple[Any, ...]:
        kernel = kernels.current()
        of_gates = module.empty_like(gates)
        gh, gc = g[0, -1], g[1, -1]
        for t in range(steps - 1, -1, -1):
            before = states[1, t - 1] if t else first_c
            of_gates[t], gc = kernel.lstm_cell_backward(gh, gc, gates[t], before, states[1, t])
            gh = kernel.matmul(of_gates[t], w_hh)
            if t:
                gh, gc = gh + g[0, t - 1], gc + g[1, t - 1]
        flat = of_gates.reshape(steps * n, 4 * hidden)
        gradients = [
            needs[0] and kernel.matmul(flat, w_ih).reshape(inputs.shape),
            gh,
            gc,
            needs[3] and kernel.matmul(flat.T, rows),
            needs[4] and kernel.matmul(flat.T, module.concatenate([first_h[None], states[0, :-1]]).reshape(-1, hidden)),
        ]
        return (*gradients, *(need and kernel.sum_rows(flat) for need in needs[5:]))

    vjp.depth = steps  # type: ignore[attr-defined]  # for `minidl.depth`: so many steps follow each other
    both = record(states, tuple(operands), vjp, saved=(0, 1, 2, 3, 4, OUTPUT))
    return both[0], both[0, -1], both[1, -1]


def _both_or_none(name: str, bias_ih: Any, bias_hh: Any) -> list[Tensor]:
    if (bias_ih is None) != (bias_hh is None):
        raise ValueError(f"{name}: give both biases, or none")
    return [] if bias_ih is None else [operand(bias_ih), operand(bias_hh)]


def _check_shapes(name: str, gates: int, x: Any, states: list[Any], w_ih: Any, w_hh: Any, biases: list[Any]) -> None:
    hidden = w_hh.shape[-1]
    if x.ndim != 3 or not len(x):
        raise ValueError(f"{name}: x (t, n, features) with t >= 1 expected, got {x.shape}")
    expected = {
        **{state: (array, (x.shape[1], hidden)) for state, array in zip("hc", states, strict=False)},
        "weight_ih": (w_ih, (gates * hidden, x.shape[2])),
        "weight_hh": (w_hh, (gates * hidden, hidden)),
        **{name: (bias, (gates * hidden,)) for name, bias in zip(("bias_ih", "bias_hh"), biases, strict=False)},
    }
    for operand_name, (array, shape) in expected.items():
        if array.shape != shape:
            raise ValueError(f"{name}: {operand_name} {shape} expected for x {x.shape}, got {array.shape}")
