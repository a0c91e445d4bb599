"""Nonlinearities and their derivatives, elementwise, and the step of long short-term memory: numpy (or CuPy)."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from minidl.kernels import Array, array_module

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
    "tanh",
    "tanh_backward",
]


def relu(x: Array) -> Array:
    return array_module(x).maximum(x, 0)


def relu_backward(g: Array, out: Array) -> Array:
    """g where the output is positive or nan, else 0."""
    return array_module(out).where(out <= 0, 0, g)


def tanh(x: Array) -> Array:
    return array_module(x).tanh(x)


def tanh_backward(g: Array, out: Array) -> Array:
    return g * (1 - out * out)


# exp(-|x|) is at most 1, so nothing overflows; log1p keeps the digits of small numbers.


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), which for x < 0 is exp(x) / (1 + exp(x))."""
    module = array_module(x)
    return module.exp(module.minimum(x, 0)) / (1 + module.exp(-module.abs(x)))


def sigmoid_backward(g: Array, out: Array) -> Array:
    return g * (out * (1 - out))


def softplus(x: Array) -> Array:
    """log(1 + exp(x))."""
    module = array_module(x)
    return module.maximum(x, 0) + module.log1p(module.exp(-module.abs(x)))


def softplus_backward(g: Array, x: Array) -> Array:
    return g * sigmoid(x)


def log_sigmoid(x: Array) -> Array:
    """log(sigmoid(x)) = -softplus(-x)."""
    module = array_module(x)
    return module.minimum(x, 0) - module.log1p(module.exp(-module.abs(x)))


def log_sigmoid_backward(g: Array, x: Array) -> Array:
    return g * sigmoid(-x)


def gelu(x: Array) -> Array:
    """x Phi(x), where Phi is the normal distribution function."""
    module = array_module(x)
    below = module.exp(-0.5 * x * x) * tail_ratio(x)
    return x * module.where(x < 0, below, 1 - below)


def gelu_backward(g: Array, x: Array) -> Array:
    """g (Phi(x) + x phi(x)), where phi is the normal density."""
    module = array_module(x)
    power = module.exp(-0.5 * x * x)
    below = power * tail_ratio(x)
    return g * (module.where(x < 0, below, 1 - below) + x * (power * (1 / math.sqrt(2 * math.pi))))


# ---- the normal distribution ----

# Phi(-a) = exp(-a**2 / 2) r(a) for a >= 0, where r falls slowly from 1/2 as 1 / (a sqrt(2 pi)). Written in
# t = (a - c) / (a + c), the function (a + c) r(a) is nearly a straight line from t = -1 (a = 0) to t = 1 (a infinite).
# A polynomial in t approximates it to nearly full precision for every a, in the tail too.
# Source: Shepherd and Laframboise, Chebyshev approximation of (1 + 2x) exp(x**2) erfc(x), Math. Comp. 36 (1981).

CENTRE = 5.3  # c
FARTHEST = 50.0  # beyond it exp(-a**2 / 2) is 0


@cache
def tail_polynomial(terms: int) -> list[float]:
    """The coefficients of (a + c) r(a) in powers of t, the lowest first, interpolated at Chebyshev points."""
    chebyshev = np.polynomial.chebyshev
    points = np.vectorize(lambda t: (2 * CENTRE / (1 - t)) * _ratio(CENTRE * (1 + t) / (1 - t)))
    return chebyshev.cheb2poly(chebyshev.chebinterpolate(points, terms - 1)).tolist()


def _ratio(a: float) -> float:
    """Phi(-a) / exp(-a**2 / 2), by the C library's erfc, or by Laplace's continued fraction where that underflows."""
    if a < 2.5:
        return 0.5 * math.erfc(a * math.sqrt(0.5)) * math.exp(0.5 * a * a)
    fraction = a
    for k in range(200, 0, -1):
        fraction = a + k / fraction
    return 1 / (fraction * math.sqrt(2 * math.pi))


def tail_ratio(x: Array) -> Array:
    """r(|x|); the relative error is below 1e-14 in float64."""
    module = array_module(x)
    a = module.minimum(module.abs(x), FARTHEST)
    inverse = 1 / (a + CENTRE)
    t = (a - CENTRE) * inverse
    *lower, highest = tail_polynomial(20)
    polynomial = highest * t + lower[-1]
    for coefficient in lower[-2::-1]:
        polynomial = polynomial * t + coefficient
    return polynomial * inverse


# ---- a step of LSTM after its matrix products ----

# The gates are concatenated, (n, 4 hidden), in PyTorch's order: input i, forget f, candidate g, output o.


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
