"""Matrix products: BLAS computes them, as in the reference. A compiled loop adds the bias of the linear layer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import compiled
from minidl.kernels.jit.eligible import eligible, fits
from minidl.kernels.parallel_for import parallel_for
from minidl.threads import in_one_thread

__all__ = ["linear", "matmul"]

ALONE = 1 << 18  # multiply-adds of a product, up to which OpenBLAS runs it in one thread
DIVIDED = 1 << 23  # multiply-adds of a product; from this size on OpenBLAS uses its threads
WORTH_A_THREAD = 1 << 22  # multiply-adds; 64 products of 64 x 32 and 32 x 64, two shares, take 280 us in one thread


def matmul(a: Array, b: Array, like: Array | None = None) -> Array:
    """a @ b, as the reference; several threads share out many small matrices, of which BLAS divides none."""
    if a.ndim == b.ndim == 2:
        return product_of_matrices(reference.matmul, a, b)
    if a.ndim < 3 or a.shape[:-2] != b.shape[:-2] or not (fits(a) and fits(b)) or a.dtype != b.dtype:
        return reference.matmul(a, b, like)
    each, most = a.shape[-2] * a.shape[-1] * b.shape[-1], a.size * b.shape[-1] // WORTH_A_THREAD
    if most < 2 or each > ALONE:
        return reference.matmul(a, b, like)
    shape = (*a.shape[:-1], b.shape[-1])
    out = np.empty(shape, a.dtype) if like is None else np.empty_like(like, shape=shape)

    def of_matrices(begin: int, end: int) -> None:
        np.matmul(a[begin:end], b[begin:end], out=out[begin:end])

    parallel_for(len(a), most, of_matrices)
    return out


def product_of_matrices(product: Callable[..., Any], a: Array, b: Array, *out: Array) -> Any:
    """product(a, b, *out): BLAS divides it among threads if that pays.

    Measured on two cores of an Intel Xeon with AVX-512: 64 x 64 times 64 x 128 take 11 us in one thread and 16 in two;
    128 x 128 times 128 x 128, 33 and 41 us; 192 x 192 times 192 x 192, 102 and 84. On a loaded machine the second
    thread may have to wait for its core: a compiled step of 64-128-10 took 0.4 ms in one thread and 9 in two.
    """
    if ALONE < a.size * b.shape[1] < DIVIDED:
        return in_one_thread(product, a, b, *out)
    return product(a, b, *out)


multiply = partial(product_of_matrices, np.dot)


def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """x (rows, n_in), weight (n_out, n_in), bias (n_out,) -> x @ weight.T + bias, (rows, n_out)."""
    if bias is None:
        return matmul(x, weight.T)
    if bias.shape != weight.shape[:1] or not eligible(bias, x):
        return reference.linear(x, weight, bias)
    out = matmul(x, weight.T)
    _add_to_rows(out, bias)
    return out


# numpy calls an inner loop for every row. Measured on an AMD EPYC with AVX2, 64 rows of 128 numbers: 3.2 us, here 1.5;
# 1,024 rows of 384: 98 and 41.
@compiled()
def _add_to_rows(out: Any, row: Any) -> None:
    for i in range(out.shape[0]):
        for j in range(row.size):
            out[i, j] += row[j]
