"""Nonlinearities and their derivatives in one pass over memory."""

from __future__ import annotations

import math
from typing import Any

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import CONTRACT, compiled, inner
from minidl.kernels.jit.elementary import exp, log_ratio, tail_ratio
from minidl.kernels.jit.function_attributes import wide_vectors
from minidl.kernels.jit.memory_order import fits, mapped, mapped_pairs

__all__ = [
    "gelu",
    "gelu_backward",
    "log_sigmoid",
    "log_sigmoid_backward",
    "relu",
    "relu_backward",
    "sigmoid",
    "sigmoid_backward",
    "softplus",
    "softplus_backward",
    "tanh_backward",
]

# tanh is the reference's: numpy's is vectorized already.


def relu(x: Array) -> Array:
    """max(x, 0)."""
    return mapped(_relu, x) if fits(x) else reference.relu(x)


def relu_backward(g: Array, out: Array) -> Array:
    """g, but 0 where the output is 0."""
    return mapped_pairs(_relu_backward, g, out) if fits(out, g) else reference.relu_backward(g, out)


def tanh_backward(g: Array, out: Array) -> Array:
    """g (1 - out**2)."""
    return mapped_pairs(_tanh_backward, g, out) if fits(out, g) else reference.tanh_backward(g, out)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    return mapped(_sigmoids, x) if fits(x) else reference.sigmoid(x)


def sigmoid_backward(g: Array, out: Array) -> Array:
    """g out (1 - out)."""
    return mapped_pairs(_sigmoid_backward, g, out) if fits(out, g) else reference.sigmoid_backward(g, out)


def softplus(x: Array) -> Array:
    """log(1 + exp(x))."""
    return mapped(_softplus, x) if fits(x) else reference.softplus(x)


def softplus_backward(g: Array, x: Array) -> Array:
    """g sigmoid(x)."""
    return mapped_pairs(_softplus_backward, g, x) if fits(x, g) else reference.softplus_backward(g, x)


def log_sigmoid(x: Array) -> Array:
    """log(sigmoid(x))."""
    return mapped(_log_sigmoid, x) if fits(x) else reference.log_sigmoid(x)


def log_sigmoid_backward(g: Array, x: Array) -> Array:
    """g sigmoid(-x)."""
    return mapped_pairs(_log_sigmoid_backward, g, x) if fits(x, g) else reference.log_sigmoid_backward(g, x)


def gelu(x: Array) -> Array:
    """x Phi(x)."""
    return mapped(_gelu, x) if fits(x) else reference.gelu(x)


def gelu_backward(g: Array, x: Array) -> Array:
    """g (Phi(x) + x phi(x))."""
    return mapped_pairs(_gelu_backward, g, x) if fits(x, g) else reference.gelu_backward(g, x)


# ---- the loops ----


@compiled()
def _relu(x: Any, out: Any) -> None:
    wide_vectors()
    zero = x.dtype.type(0)
    for i in range(x.size):
        out[i] = zero if x[i] < zero else x[i]  # in this order nan and -0 are kept


@compiled()
def _relu_backward(g: Any, out: Any, gradient: Any) -> None:
    wide_vectors()
    zero = g.dtype.type(0)
    for i in range(g.size):
        gradient[i] = zero if out[i] <= zero else g[i]


@compiled(CONTRACT)
def _tanh_backward(g: Any, out: Any, gradient: Any) -> None:
    one = g.dtype.type(1)
    for i in range(g.size):
        gradient[i] = g[i] * (one - out[i] * out[i])


@inner(CONTRACT)
def _sigmoid(x: Any, one: Any) -> Any:
    power = exp(-abs(x))
    return (power if x < 0 else one) / (one + power)


@compiled(CONTRACT)
def _sigmoids(x: Any, out: Any) -> None:
    wide_vectors()
    one = x.dtype.type(1)
    for i in range(x.size):
        out[i] = _sigmoid(x[i], one)


@compiled(CONTRACT)
def _sigmoid_backward(g: Any, out: Any, gradient: Any) -> None:
    one = g.dtype.type(1)
    for i in range(g.size):
        gradient[i] = g[i] * (out[i] * (one - out[i]))


@inner(CONTRACT)
def _log_of_one_plus_power(x: Any, one: Any) -> Any:
    """log(1 + exp(-|x|))."""
    power = exp(-abs(x))
    return log_ratio(power / (one + one + power))


@compiled(CONTRACT)
def _softplus(x: Any, out: Any) -> None:
    wide_vectors()
    zero, one = x.dtype.type(0), x.dtype.type(1)
    for i in range(x.size):
        out[i] = (zero if x[i] <= zero else x[i]) + _log_of_one_plus_power(x[i], one)


@compiled(CONTRACT)
def _softplus_backward(g: Any, x: Any, gradient: Any) -> None:
    wide_vectors()
    one = x.dtype.type(1)
    for i in range(g.size):
        gradient[i] = g[i] * _sigmoid(x[i], one)


@compiled(CONTRACT)
def _log_sigmoid(x: Any, out: Any) -> None:
    wide_vectors()
    zero, one = x.dtype.type(0), x.dtype.type(1)
    for i in range(x.size):
        out[i] = (zero if x[i] >= zero else x[i]) - _log_of_one_plus_power(x[i], one)


@compiled(CONTRACT)
def _log_sigmoid_backward(g: Any, x: Any, gradient: Any) -> None:
    wide_vectors()
    one = x.dtype.type(1)
    for i in range(g.size):
        gradient[i] = g[i] * _sigmoid(-x[i], one)


_DENSITY = 1 / math.sqrt(2 * math.pi)


@compiled(CONTRACT)
def _gelu(x: Any, out: Any) -> None:
    wide_vectors()
    one, minus_half = x.dtype.type(1), x.dtype.type(-0.5)
    for i in range(x.size):
        below = exp(minus_half * x[i] * x[i]) * tail_ratio(abs(x[i]))
        out[i] = x[i] * (below if x[i] < 0 else one - below)


@compiled(CONTRACT)
def _gelu_backward(g: Any, x: Any, gradient: Any) -> None:
    wide_vectors()
    one, minus_half, density = x.dtype.type(1), x.dtype.type(-0.5), x.dtype.type(_DENSITY)
    for i in range(g.size):
        power = exp(minus_half * x[i] * x[i])
        below = power * tail_ratio(abs(x[i]))
        gradient[i] = g[i] * ((below if x[i] < 0 else one - below) + x[i] * (power * density))
