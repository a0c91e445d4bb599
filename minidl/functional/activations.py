"""Elementwise functions: exp, log, square root, and the nonlinearities of neural networks.

At infinities, not-a-numbers and signed zeros, values and gradients are PyTorch's (`test_special_values_parity.py`).
"""

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
    out = kernels.current().exp(a.data)
    return record(out, (a,), lambda g, needs: (g * out,), saved=(OUTPUT,))


@tensor_method("log")
def log(a: Any) -> Tensor:
    """The natural logarithm."""
    a = operand(a)
    x = a.data
    return record(kernels.current().log(x), (a,), lambda g, needs: (g / x,), saved=(0,))


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


def logsigmoid(a: Any) -> Tensor:
    """log(sigmoid(a)), without the underflow of taking the logarithm afterwards; its derivative is sigmoid(-a).

    >>> logsigmoid([-200.0, 0.0])
    Tensor([-200.    ,   -0.6931], float32)
    """
    a = operand(a)
    x = a.data
    out = kernels.current().log_sigmoid(x)
    return record(out, (a,), lambda g, needs: (kernels.current().log_sigmoid_backward(g, x),), saved=(0,))


def softplus(a: Any, beta: float = 1.0) -> Tensor:
    """log(1 + exp(beta a)) / beta, a smooth max(a, 0); its derivative is sigmoid(beta a).

    PyTorch's `threshold` is not needed: nothing overflows.

    >>> softplus([-1.0, 0.0, 1000.0])
    Tensor([3.1326e-01, 6.9315e-01, 1.0000e+03], float32)
    """
    a = operand(a)
    if beta != 1:
        return softplus(a * beta) / beta
    x = a.data
    return record(
        kernels.current().softplus(x), (a,), lambda g, needs: (kernels.current().softplus_backward(g, x),), saved=(0,)
    )


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
    """a Phi(a), Phi the normal distribution function, exact, not the approximation by tanh.

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units (arXiv:1606.08415), section 2.
    """
    a = operand(a)
    x = a.data
    out = kernels.current().gelu(x)
    return record(out, (a,), lambda g, needs: (kernels.current().gelu_backward(g, x),), saved=(0,))
