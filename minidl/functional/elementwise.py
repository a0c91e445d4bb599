"""Elementwise operations, one per row of a table: the value, and the gradient of each operand.

x and y are the operands' arrays, out is the result, and g is the gradient of the loss with respect to the result.
`rules.py` makes operations on tensors from these rows.

>>> from minidl import Tensor
>>> Tensor([[1.0], [2.0]]) + Tensor([10.0, 20.0])  # broadcast as in numpy
Tensor([[11., 21.],
        [12., 22.]], float32)
>>> relu([-1.0, 2.0]), logsigmoid([-200.0, 0.0])
(Tensor([0., 2.], float32), Tensor([-200.    ,   -0.6931], float32))

At infinities, not-a-numbers and signed zeros, values and gradients are PyTorch's (`test_special_values_parity.py`).

References
    gelu: Hendrycks and Gimpel, Gaussian Error Linear Units (arXiv:1606.08415), section 2
"""

from __future__ import annotations

import operator
from math import pi
from typing import Any

from minidl.arguments import one_of
from minidl.functional.bind import operand, tensor_method
from minidl.functional.one_type import in_float32
from minidl.functional.rules import binary, unary
from minidl.kernels import Array, array_module, current
from minidl.kernels.sixteen_bit import is_floating_point
from minidl.tensor import Tensor


def signs(x: Array) -> Array:
    """1, 0 or -1 as small integers; 0 for not a number, as in PyTorch."""
    return (x > 0).view("int8") - (x < 0).view("int8")


def zero(g: Array) -> Array:
    """The rule of a piecewise constant operation: a gradient of zeros."""
    return array_module(g).zeros_like(g)


# fmt: off
# two operands        x _ y               gradient of a               gradient of b

add = binary("add", "+", operator.add,     lambda g: g,               lambda g: g)
sub = binary("sub", "-", operator.sub,     lambda g: g,               lambda g: -g)
mul = binary("mul", "*", operator.mul,     lambda g, x, y: g * y,     lambda g, x, y: g * x)
divided = binary("divided", "/", operator.truediv,
                                           lambda g, x, y: g / y,     lambda g, x, y: -g * (x / y / y))

# one operand                value of x                              gradient of a

neg = unary("neg",           operator.neg,                           lambda g: -g,
            "-a.")
abs = unary("abs",           lambda x: array_module(x).abs(x),       lambda g, x: g * signs(x),
            "The absolute value; the derivative at 0 is 0.")
square = unary("square",     lambda x: x * x,                        lambda g, x: g * (2 * x),
            "a * a.")
sign = unary("sign",         lambda x: signs(x).astype(x.dtype),     zero,
            "-1, 0 or 1, with the sign of a; the derivative is 0.")
sqrt = unary("sqrt",         lambda x: array_module(x).sqrt(x),      lambda g, out: g / (2 * out),
            "The square root.")
exp = unary("exp",           lambda x: current().exp(x),             lambda g, out: g * out,
            "e to the power a.")
log = unary("log",           lambda x: current().log(x),             lambda g, x: g / x,
            "The natural logarithm.")
sin = unary("sin",           lambda x: array_module(x).sin(x),       lambda g, x: g * array_module(x).cos(x),
            "The sine of a, in radians.")
cos = unary("cos",           lambda x: array_module(x).cos(x),       lambda g, x: -g * array_module(x).sin(x),
            "The cosine of a, in radians.")

# the nonlinearities of neural networks, with kernels of their own

relu = unary("relu",         lambda x: current().relu(x),            lambda g, out: current().relu_backward(g, out),
            "max(a, 0); the derivative at 0 is 0.")
tanh = unary("tanh",         lambda x: current().tanh(x),            lambda g, out: current().tanh_backward(g, out),
            "The hyperbolic tangent; its derivative is 1 - tanh(a)**2.")
sigmoid = unary("sigmoid",   lambda x: current().sigmoid(x),         lambda g, out: current().sigmoid_backward(g, out),
            "1 / (1 + exp(-a)); its derivative is sigmoid(a) (1 - sigmoid(a)).")
_gelu = unary("_gelu",       lambda x: current().gelu(x),            lambda g, x: current().gelu_backward(g, x),
            "a Phi(a), where Phi is the normal distribution function.")
logsigmoid = unary("logsigmoid", lambda x: current().log_sigmoid(x), lambda g, x: current().log_sigmoid_backward(g, x),
            "log(sigmoid(a)), without the underflow of taking the logarithm afterwards; its derivative is sigmoid(-a).")
_softplus = unary("_softplus", lambda x: current().softplus(x),      lambda g, x: current().softplus_backward(g, x),
            "log(1 + exp(a)).")
# fmt: on


def softplus(a: Any, beta: float = 1.0) -> Tensor:
    """log(1 + exp(beta a)) / beta, a smooth max(a, 0); its derivative is sigmoid(beta a).

    PyTorch's `threshold` is not needed: nothing overflows.

    >>> softplus([-1.0, 0.0, 1000.0])
    Tensor([3.1326e-01, 6.9315e-01, 1.0000e+03], float32)
    """
    return _softplus(a) if beta == 1 else _softplus(operand(a) * beta) / beta


@tensor_method("gelu")
def gelu(a: Any, approximate: str = "none") -> Tensor:
    """a Phi(a), where Phi is the normal distribution function: exact, or with approximate="tanh" the tanh form.

    >>> gelu([-1.0, 1.0]), gelu([-1.0, 1.0], approximate="tanh")
    (Tensor([-0.1587,  0.8413], float32), Tensor([-0.1588,  0.8412], float32))
    """
    if approximate == "none":
        return _gelu(a)
    one_of("gelu: approximate", approximate, ("none", "tanh"))
    return _gelu_by_tanh(a)


@in_float32("a")
def _gelu_by_tanh(a: Any) -> Tensor:
    a = operand(a)
    return 0.5 * a * (1 + tanh((2 / pi) ** 0.5 * (a + 0.044715 * (a * a * a))))


# ---- division, rounded: `i // width` and `i % width` are row and column of a flat index ----


def _quotient(x: Array, y: Array) -> Array:
    return current().floor_divide(x, y) if is_floating_point(x.dtype) else x // y


def _remainder(x: Array, y: Array) -> Array:
    return current().remainder(x, y) if is_floating_point(x.dtype) else x % y


def _toward_zero(x: Array, y: Array) -> Array:
    if is_floating_point(x.dtype) or is_floating_point(y.dtype):
        return array_module(x).trunc(x / y)
    down, rest = _quotient(x, y), _remainder(x, y)
    return down + ((rest != 0) & ((x < 0) != (y < 0)))


floor_divide = binary("floor_divide", "//", _quotient, zero, zero, doc="a / b, rounded down; the gradient is 0.")
_truncated_divide = binary("_truncated_divide", "/", _toward_zero, zero, zero, doc="a / b, rounded towards zero.")
remainder = binary(
    "remainder",
    "%",
    _remainder,
    lambda g, x, y: g,
    lambda g, x, y: -g * _quotient(x, y),
    doc="a - b * (a // b), which has b's sign. The gradient of a // b is 0.",
)


@tensor_method("div")
def div(a: Any, b: Any, *, rounding_mode: str | None = None) -> Tensor:
    """a / b, elementwise. rounding_mode: "floor" rounds down, "trunc" towards zero; the gradient is 0 then.

    >>> div([-7.0, 7.0], 2), div([-7.0, 7.0], 2, rounding_mode="trunc")
    (Tensor([-3.5,  3.5], float32), Tensor([-3.,  3.], float32))
    """
    divisions = {None: divided, "floor": floor_divide, "trunc": _truncated_divide}
    return divisions[one_of("div: rounding_mode", rounding_mode, divisions)](a, b)


# ---- operators and methods of Tensor ----

for operation in (
    add, sub, mul, floor_divide, remainder, neg, abs, square, sign, sqrt, exp, log, sin, cos, relu, tanh, sigmoid
):  # fmt: skip
    tensor_method(operation.__name__)(operation)
tensor_method("__add__", "__radd__")(add)
tensor_method("__sub__")(sub)
tensor_method("__rsub__")(lambda a, b: sub(b, a))
tensor_method("__mul__", "__rmul__")(mul)
tensor_method("__truediv__")(divided)
tensor_method("__rtruediv__")(lambda a, b: divided(b, a))
tensor_method("__floordiv__")(floor_divide)
tensor_method("__rfloordiv__")(lambda a, b: floor_divide(b, a))
tensor_method("__mod__")(remainder)
tensor_method("__rmod__")(lambda a, b: remainder(b, a))
tensor_method("__neg__")(neg)
tensor_method("__abs__")(abs)
