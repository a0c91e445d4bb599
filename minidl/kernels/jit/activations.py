"""Nonlinearities and their derivatives in one pass over memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import CONTRACT, compiled
from minidl.kernels.jit.elementary import erf, exp
from minidl.kernels.jit.eligible import eligible

__all__ = ["gelu", "gelu_backward", "relu", "relu_backward", "sigmoid_backward", "tanh_backward"]

# tanh and sigmoid stay the reference's: numpy's tanh is made of vector instructions already.


def relu(x: Array) -> Array:
    """max(x, 0)."""
    if not eligible(x):
        return reference.relu(x)
    out = np.empty_like(x)
    _relu(x.reshape(-1), out.reshape(-1))
    return out


def relu_backward(g: Array, out: Array) -> Array:
    """g where the output is positive."""
    if not eligible(g, out):
        return reference.relu_backward(g, out)
    gradient = np.empty_like(g)
    _relu_backward(g.reshape(-1), out.reshape(-1), gradient.reshape(-1))
    return gradient


def tanh_backward(g: Array, out: Array) -> Array:
    """g (1 - out**2)."""
    if not eligible(g, out):
        return reference.tanh_backward(g, out)
    gradient = np.empty_like(g)
    _tanh_backward(g.reshape(-1), out.reshape(-1), gradient.reshape(-1))
    return gradient


def sigmoid_backward(g: Array, out: Array) -> Array:
    """g out (1 - out)."""
    if not eligible(g, out):
        return reference.sigmoid_backward(g, out)
    gradient = np.empty_like(g)
    _sigmoid_backward(g.reshape(-1), out.reshape(-1), gradient.reshape(-1))
    return gradient


def gelu(x: Array) -> Array:
    """x Phi(x); compiled in float32 only, where a short series suffices for erf."""
    if not eligible(x) or x.dtype != np.float32:
        return reference.gelu(x)
    out = np.empty_like(x)
    _gelu(x.reshape(-1), out.reshape(-1))
    return out


def gelu_backward(g: Array, x: Array) -> Array:
    """g (Phi(x) + x phi(x)); compiled in float32 only."""
    if not eligible(g, x) or x.dtype != np.float32:
        return reference.gelu_backward(g, x)
    gradient = np.empty_like(g)
    _gelu_backward(g.reshape(-1), x.reshape(-1), gradient.reshape(-1))
    return gradient


@compiled()
def _relu(x: Any, out: Any) -> None:
    zero = x.dtype.type(0)
    for i in range(x.size):
        out[i] = zero if x[i] <= zero else x[i]  # in this order not a number stays what it is


@compiled()
def _relu_backward(g: Any, out: Any, gradient: Any) -> None:
    zero = g.dtype.type(0)
    for i in range(g.size):
        gradient[i] = g[i] if out[i] > zero else zero


@compiled(CONTRACT)
def _tanh_backward(g: Any, out: Any, gradient: Any) -> None:
    one = g.dtype.type(1)
    for i in range(g.size):
        gradient[i] = g[i] * (one - out[i] * out[i])


@compiled(CONTRACT)
def _sigmoid_backward(g: Any, out: Any, gradient: Any) -> None:
    one = g.dtype.type(1)
    for i in range(g.size):
        gradient[i] = g[i] * (out[i] * (one - out[i]))


_ROOT_HALF = np.float32(math.sqrt(0.5))
_DENSITY = np.float32(1 / math.sqrt(2 * math.pi))
_HALF, _ONE = np.float32(0.5), np.float32(1)


@compiled(CONTRACT)
def _gelu(x: Any, out: Any) -> None:
    for i in range(x.size):
        out[i] = x[i] * (_HALF * (_ONE + erf(x[i] * _ROOT_HALF)))


@compiled(CONTRACT)
def _gelu_backward(g: Any, x: Any, gradient: Any) -> None:
    for i in range(g.size):
        probability = _HALF * (_ONE + erf(x[i] * _ROOT_HALF))
        gradient[i] = g[i] * (probability + x[i] * _DENSITY * exp(-_HALF * x[i] * x[i]))
