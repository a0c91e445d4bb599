"""A step of long short-term memory: one pass over the gates, and numpy's tanh, which is already vectorised."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import CONTRACT, compiled
from minidl.kernels.jit.elementary import exp
from minidl.kernels.jit.eligible import eligible

__all__ = ["lstm_cell", "lstm_cell_backward"]


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
