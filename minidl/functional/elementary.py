"""More elementwise functions: sine, cosine, square and sign."""

from __future__ import annotations

from typing import Any

from minidl.functional.bind import operand, tensor_method
from minidl.kernels import array_module
from minidl.tensor import Tensor, record


@tensor_method("sin")
def sin(a: Any) -> Tensor:
    """The sine of a, in radians."""
    a = operand(a)
    x = a.data
    module = array_module(x)
    return record(module.sin(x), (a,), lambda g, needs: (g * module.cos(x),), saved=(0,))


@tensor_method("cos")
def cos(a: Any) -> Tensor:
    """The cosine of a, in radians."""
    a = operand(a)
    x = a.data
    module = array_module(x)
    return record(module.cos(x), (a,), lambda g, needs: (-g * module.sin(x),), saved=(0,))


@tensor_method("square")
def square(a: Any) -> Tensor:
    """a * a."""
    a = operand(a)
    x = a.data
    return record(x * x, (a,), lambda g, needs: (g * (2 * x),), saved=(0,))


@tensor_method("sign")
def sign(a: Any) -> Tensor:
    """-1, 0 or 1, with the sign of a; no gradient passes."""
    x = operand(a).data
    return record(array_module(x).sign(x), (), None)
