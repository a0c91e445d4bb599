"""Nonlinearities and their derivatives in one pass over memory, and the step of long short-term memory.

tanh is the reference's: numpy's is vectorized already.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import CONTRACT, compiled, inner
from minidl.kernels.jit.elementary import exp, log_ratio, tail_ratio
from minidl.kernels.jit.eligible import eligible
from minidl.kernels.jit.function_attributes import wide_vectors
from minidl.kernels.jit.memory_order import elementwise

__all__ = [
    "gelu",
    "gelu_backward",
    "log_sigmoid",
    "log_sigmoid_backward",
    "lstm_cell",
    "lstm_cell_backward",
    "relu",
    "relu_backward",
    "sigmoid",
    "sigmoid_backward",
    "softplus",
    "softplus_backward",
    "tanh_backward",
]

DENSITY = 1 / math.sqrt(2 * math.pi)  # of the normal distribution at 0


@elementwise()
def relu(x: Any, out: Any) -> None:
    """max(x, 0)."""
    wide_vectors()
    zero = x.dtype.type(0)
    for i in range(x.size):
        out[i] = zero if x[i] < zero else x[i]  # in this order nan and -0 are kept


@elementwise()
def relu_backward(g: Any, out: Any, gradient: Any) -> None:
    """g, but 0 where the output is 0."""
    wide_vectors()
    zero = g.dtype.type(0)
    for i in range(g.size):
        gradient[i] = zero if out[i] <= zero else g[i]


@inner(CONTRACT)
def _tanh_backward(g: Any, out: Any, one: Any) -> Any:
    return g * (one - out * out)


@elementwise(CONTRACT)
def tanh_backward(g: Any, out: Any, gradient: Any) -> None:
    """g (1 - out**2)."""
    one = g.dtype.type(1)
    for i in range(g.size):
        gradient[i] = _tanh_backward(g[i], out[i], one)


@inner(CONTRACT)
def _sigmoid(x: Any, one: Any) -> Any:
    power = exp(-abs(x))
    return (power if x < 0 else one) / (one + power)


@elementwise(CONTRACT)
def sigmoid(x: Any, out: Any) -> None:
    """1 / (1 + exp(-x))."""
    wide_vectors()
    one = x.dtype.type(1)
    for i in range(x.size):
        out[i] = _sigmoid(x[i], one)


@elementwise(CONTRACT)
def sigmoid_backward(g: Any, out: Any, gradient: Any) -> None:
    """g out (1 - out)."""
    one = g.dtype.type(1)
    for i in range(g.size):
        gradient[i] = g[i] * (out[i] * (one - out[i]))


@inner(CONTRACT)
def _log_of_one_plus_power(x: Any, one: Any) -> Any:
    """log(1 + exp(-|x|))."""
    power = exp(-abs(x))
    return log_ratio(power / (one + one + power))


@elementwise(CONTRACT, cost=4)
def softplus(x: Any, out: Any) -> None:
    """log(1 + exp(x))."""
    wide_vectors()
    zero, one = x.dtype.type(0), x.dtype.type(1)
    for i in range(x.size):
        out[i] = (zero if x[i] <= zero else x[i]) + _log_of_one_plus_power(x[i], one)


@elementwise(CONTRACT)
def softplus_backward(g: Any, x: Any, gradient: Any) -> None:
    """g sigmoid(x)."""
    wide_vectors()
    one = x.dtype.type(1)
    for i in range(g.size):
        gradient[i] = g[i] * _sigmoid(x[i], one)


@elementwise(CONTRACT, cost=4)
def log_sigmoid(x: Any, out: Any) -> None:
    """log(sigmoid(x))."""
    wide_vectors()
    zero, one = x.dtype.type(0), x.dtype.type(1)
    for i in range(x.size):
        out[i] = (zero if x[i] >= zero else x[i]) - _log_of_one_plus_power(x[i], one)


@elementwise(CONTRACT)
def log_sigmoid_backward(g: Any, x: Any, gradient: Any) -> None:
    """g sigmoid(-x)."""
    wide_vectors()
    one = x.dtype.type(1)
    for i in range(g.size):
        gradient[i] = g[i] * _sigmoid(-x[i], one)


@elementwise(CONTRACT, cost=4)
def gelu(x: Any, out: Any) -> None:
    """x Phi(x)."""
    wide_vectors()
    one, minus_half = x.dtype.type(1), x.dtype.type(-0.5)
    for i in range(x.size):
        below = exp(minus_half * x[i] * x[i]) * tail_ratio(abs(x[i]))
        out[i] = x[i] * (below if x[i] < 0 else one - below)


@elementwise(CONTRACT, cost=4)
def gelu_backward(g: Any, x: Any, gradient: Any) -> None:
    """g (Phi(x) + x phi(x))."""
    wide_vectors()
    one, minus_half, density = x.dtype.type(1), x.dtype.type(-0.5), x.dtype.type(DENSITY)
    for i in range(g.size):
        power = exp(minus_half * x[i] * x[i])
        below = power * tail_ratio(abs(x[i]))
        gradient[i] = g[i] * ((below if x[i] < 0 else one - below) + x[i] * (power * density))


def lstm_cell(gates: Array, c: Array) -> tuple[Array, Array, Array]:
    """i, f, o = sigmoid, g = tanh of the gates, overwritten; c' = f c + i g; h' = o tanh(c') -> gates, h', c'."""
    if not eligible(gates, c):
        return reference.lstm_cell(gates, c)
    n = c.shape[1]
    candidates, new = gates[:, 2 * n : 3 * n], np.empty_like(c)
    np.tanh(candidates, out=candidates)
    _lstm_cell(gates, c, new)
    h = np.tanh(new)
    h *= gates[:, 3 * n :]
    return gates, h, new


def lstm_cell_backward(gh: Array, gc: Array, gates: Array, c: Array, new: Array) -> tuple[Array, Array]:
    """The gradients with respect to the gates before sigmoid and tanh, and to c, from those of h' and c'."""
    if not eligible(gh, gc, gates, c, new):
        return reference.lstm_cell_backward(gh, gc, gates, c, new)
    gradient, before = np.empty_like(gates), np.empty_like(c)
    _lstm_cell_backward(gh, gc, gates, c, np.tanh(new), gradient, before)
    return gradient, before


@compiled(CONTRACT)
def _lstm_cell(gates: Any, c: Any, new: Any) -> None:
    one, n = c.dtype.type(1), c.shape[1]
    for row in range(c.shape[0]):
        for k in range(2 * n):
            gates[row, k] = one / (one + exp(-gates[row, k]))
        for k in range(3 * n, 4 * n):
            gates[row, k] = one / (one + exp(-gates[row, k]))
        for k in range(n):
            new[row, k] = gates[row, n + k] * c[row, k] + gates[row, k] * gates[row, 2 * n + k]


@compiled(CONTRACT)
def _lstm_cell_backward(gh: Any, gc: Any, gates: Any, c: Any, squashed: Any, gradient: Any, before: Any) -> None:
    one, n = c.dtype.type(1), c.shape[1]
    for row in range(c.shape[0]):
        for k in range(n):
            i, f = gates[row, k], gates[row, n + k]
            g, o = gates[row, 2 * n + k], gates[row, 3 * n + k]
            s = squashed[row, k]
            d = gc[row, k] + gh[row, k] * o * (one - s * s)
            gradient[row, k] = d * g * i * (one - i)
            gradient[row, n + k] = d * c[row, k] * f * (one - f)
            gradient[row, 2 * n + k] = d * i * (one - g * g)
            gradient[row, 3 * n + k] = gh[row, k] * s * o * (one - o)
            before[row, k] = d * f
