"""Matrix products, which the BLAS library behind numpy (or CuPy) computes; there is nothing to compile."""

from __future__ import annotations

from operator import matmul

from minidl.kernels import Array

__all__ = ["linear", "matmul"]


def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """x (rows, n_in), weight (n_out, n_in), bias (n_out,) -> x @ weight.T + bias, (rows, n_out)."""
    out = x @ weight.T
    if bias is not None:
        out += bias
    return out
