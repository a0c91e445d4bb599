"""Matrix products, which the BLAS library behind numpy (or CuPy) computes; there is nothing to compile.

They ask for 16-bit numbers themselves (`kernels/sixteen_bit.py`): a call around each would be felt in small products.
"""

from __future__ import annotations

from minidl.kernels import Array
from minidl.kernels.sixteen_bit import in_float32, is_sixteen_bit

__all__ = ["linear", "matmul"]


def matmul(a: Array, b: Array) -> Array:
    """a @ b."""
    if a.dtype.itemsize == 2 and is_sixteen_bit(a.dtype):
        return in_float32(matmul, a.dtype, (a, b))
    return a @ b


def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """x (rows, n_in), weight (n_out, n_in), bias (n_out,) -> x @ weight.T + bias, (rows, n_out)."""
    if x.dtype.itemsize == 2 and is_sixteen_bit(x.dtype):
        return in_float32(linear, x.dtype, (x, weight, bias))
    out = x @ weight.T
    if bias is not None:
        out += bias
    return out
