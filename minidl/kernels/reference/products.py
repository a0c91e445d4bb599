"""Matrix products: the BLAS library behind numpy (or CuPy) computes them, so that nothing is compiled here.

They handle 16-bit numbers themselves (`kernels/sixteen_bit.py`): a wrapper would slow down small products.
"""

from __future__ import annotations

from minidl.kernels import Array, array_module
from minidl.kernels.reference.reductions import sum
from minidl.kernels.sixteen_bit import in_float32, is_sixteen_bit

__all__ = ["linear", "matmul"]

BLOCK = 1024  # products that BLAS adds one after another


def matmul(a: Array, b: Array, like: Array | None = None) -> Array:
    """a @ b.

    like: an array with as many axes as the result; where many matrices are multiplied, the result's axes lie in memory
    in the order of this array's. None: the last axis is the innermost.

    For a vector BLAS adds the products one after another, which in float32 loses 1 % over a million rows (the weight's
    gradient of a linear layer with one output). Long sums are therefore computed in blocks, and `sum` adds the blocks.
    For two matrices BLAS computes in blocks itself. `dot` calls the same routine of BLAS as `@` with less preparation:
    8 x 8 times 8 x 8 takes 1.4 us, with `@` 2.6.
    """
    if a.dtype.itemsize == 2 and is_sixteen_bit(a.dtype):
        return in_float32(matmul, a.dtype, (a, b))
    if a.ndim == b.ndim == 2 and len(a) > 1 < b.shape[1]:
        return a.dot(b)
    if like is not None and a.ndim > 2:
        module = array_module(a)
        return module.matmul(a, b, out=module.empty_like(like, shape=(*like.shape[:-1], b.shape[-1])))
    count = a.shape[-1] if a.ndim else 0
    if count <= BLOCK or a.ndim > 2 or b.ndim > 2 or b.shape[:1] != (count,):
        return a @ b
    rows, columns = a.reshape(-1, count), b.reshape(count, -1)
    whole = count - count % BLOCK
    blocks = rows[:, :whole].reshape(len(rows), -1, BLOCK).swapaxes(0, 1) @ columns[:whole].reshape(
        -1, BLOCK, columns.shape[1]
    )
    out = sum(blocks, 0)
    if whole < count:
        out += rows[:, whole:] @ columns[whole:]
    return out.reshape(a.shape[:-1] + b.shape[1:])


def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """x (rows, n_in), weight (n_out, n_in), bias (n_out,) -> x @ weight.T + bias, (rows, n_out)."""
    if x.dtype.itemsize == 2 and is_sixteen_bit(x.dtype):
        return in_float32(linear, x.dtype, (x, weight, bias))
    out = matmul(x, weight.T)
    if bias is not None:
        out += bias
    return out
