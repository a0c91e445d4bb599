"""A step of long short-term memory after its matrix products: the gates, the cell and the output, elementwise.

The gates are concatenated, (n, 4 hidden), in PyTorch's order: input gate i, forget gate f, candidate g, output gate o.
"""

from __future__ import annotations

from minidl.kernels import Array, array_module
from minidl.kernels.reference.activations import sigmoid, tanh

__all__ = ["lstm_cell", "lstm_cell_backward"]


def lstm_cell(gates: Array, c: Array) -> tuple[Array, Array, Array]:
    """i, f, o = sigmoid, g = tanh of the gates, overwritten; c' = f c + i g; h' = o tanh(c') -> gates, h', c'."""
    n = c.shape[1]
    gates[:, : 2 * n] = sigmoid(gates[:, : 2 * n])
    gates[:, 2 * n : 3 * n] = tanh(gates[:, 2 * n : 3 * n])
    gates[:, 3 * n :] = sigmoid(gates[:, 3 * n :])
    i, f, g, o = (gates[:, k * n : (k + 1) * n] for k in range(4))
    new = f * c + i * g
    return gates, o * tanh(new), new


def lstm_cell_backward(gh: Array, gc: Array, gates: Array, c: Array, new: Array) -> tuple[Array, Array]:
    """The gradients with respect to the gates before sigmoid and tanh, and to c, from those of h' and c'.

    gates: as `lstm_cell` returned them; c, new: the cell before and after the step.
    """
    module, n = array_module(gh), c.shape[1]
    i, f, g, o = (gates[:, k * n : (k + 1) * n] for k in range(4))
    squashed = tanh(new)
    gc = gc + gh * o * (1 - squashed * squashed)
    parts = (gc * g * i * (1 - i), gc * c * f * (1 - f), gc * i * (1 - g * g), gh * squashed * o * (1 - o))
    return module.concatenate(parts, axis=1), gc * f
