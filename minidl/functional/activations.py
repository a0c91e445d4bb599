"""Elementwise functions: exp, log, square root, and the nonlinearities of neural networks."""

from __future__ import annotations

from typing import Any

from minidl import kernels
from minidl.functional.bind import operand, tensor_method
from minidl.kernels import array_module
from minidl.tape import OUTPUT
from minidl.tensor import Tensor, record


@tensor_method("exp")
def exp(a: Any) -> Tensor:
    """e to the power a."""
    a = operand(a)
    out = array_module(a.data).exp(a.data)
    return record(out, (a,), lambda g, needs: (g * out,), saved=(OUTPUT,))


@tensor_method("log")
def log(a: Any) -> Tensor:
    """The natural logarithm."""
    a = operand(a)
    x = a.data
    return record(array_module(x).log(x), (a,), lambda g, needs: (g / x,), saved=(0,))


@tensor_method("sqrt")
def sqrt(a: Any) -> Tensor:
    """The square root."""
    a = operand(a)
    out = array_module(a.data).sqrt(a.data)
    return record(out, (a,), lambda g, needs: (g / (2 * out),), saved=(OUTPUT,))


@tensor_method("tanh")
def tanh(a: Any) -> Tensor:
    """The hyperbolic tangent; its derivative is 1 - tanh(a)**2."""
    a = operand(a)
    out = kernels.current().tanh(a.data)
    return record(out, (a,), lambda g, needs: (kernels.current().tanh_backward(g, out),), saved=(OUTPUT,))


@tensor_method("sigmoid")
def sigmoid(a: Any) -> Tensor:
    """1 / (1 + exp(-a)); its derivative is sigmoid(a) (1 - sigmoid(a))."""
    a = operand(a)
    out = kernels.current().sigmoid(a.data)
    return record(out, (a,), lambda g, needs: (kernels.current().sigmoid_backward(g, out),), saved=(OUTPUT,))


@tensor_method("relu")
def relu(a: Any) -> Tensor:
    """max(a, 0); the derivative at 0 is 0.

    >>> relu([-1.0, 2.0])
    Tensor([0., 2.], float32)
    """
    a = operand(a)
    out = kernels.current().relu(a.data)
    return record(out, (a,), lambda g, needs: (kernels.current().relu_backward(g, out),), saved=(OUTPUT,))


@tensor_method("gelu")
def gelu(a: Any) -> Tensor:
    """a Phi(a), Phi the normal distribution function, computed with the error function.

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units (arXiv:1606.08415), section 2.
    """
    a = operand(a)
    x = a.data
    out = kernels.current().gelu(x)
    return record(out, (a,), lambda g, needs: (kernels.current().gelu_backward(g, x),), saved=(0,))
