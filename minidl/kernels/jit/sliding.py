"""The inner loops of convolution: weighted sums of shifted copies of a long row of numbers, and their adjoint.

A padded image, written row after row, is one long row of numbers, and a tap of the filter reads it from another start.
So a convolution is out[f, p] += weight[f, tap] rows[shift of the tap + p]; done for 4 filters and 4 taps at a time it
takes 16 multiply-adds for 8 loads and 4 stores, and the windows are never unfolded. Measured on one core with AVX-512,
16 -> 16 channels of 32x32, window 3x3: about 75 GFLOP/s; the matrix product with the unfolded windows reaches 65, and
unfolding takes as long again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from minidl.kernels.jit.never_inlined import never_inlined


@njit(nogil=True, fastmath={"contract"})
def slide(rows: Any, start: int, shifts: Any, weights: Any, out: Any) -> None:
    """out[f, p] = sum over t of weights[f, t] rows[start + shifts[t] + p]; f and t count to multiples of 4."""
    for f in range(0, out.shape[0], 4):
        four = out[f : f + 4]
        four[:] = 0
        for t in range(0, shifts.size, 4):
            _add_taps(rows, start, shifts[t : t + 4], weights[f : f + 4, t : t + 4], four)


# Unsigned indices: numba need not look whether they count from the end, which would keep LLVM from vectors. One array
# `out`, not four rows of it: the fewer arrays, the fewer checks that they do not overlap.
@njit(nogil=True, fastmath={"contract"})
def _add_taps(rows: Any, start: int, shifts: Any, w: Any, out: Any) -> None:
    never_inlined()
    a, b = np.uint64(start + shifts[0]), np.uint64(start + shifts[1])
    c, d = np.uint64(start + shifts[2]), np.uint64(start + shifts[3])
    a0, b0, c0, d0 = w[0, 0], w[0, 1], w[0, 2], w[0, 3]
    a1, b1, c1, d1 = w[1, 0], w[1, 1], w[1, 2], w[1, 3]
    a2, b2, c2, d2 = w[2, 0], w[2, 1], w[2, 2], w[2, 3]
    a3, b3, c3, d3 = w[3, 0], w[3, 1], w[3, 2], w[3, 3]
    for position in range(out.shape[1]):
        p = np.uint64(position)
        x, y, z, u = rows[a + p], rows[b + p], rows[c + p], rows[d + p]
        out[0, p] = out[0, p] + a0 * x + b0 * y + c0 * z + d0 * u
        out[1, p] = out[1, p] + a1 * x + b1 * y + c1 * z + d1 * u
        out[2, p] = out[2, p] + a2 * x + b2 * y + c2 * z + d2 * u
        out[3, p] = out[3, p] + a3 * x + b3 * y + c3 * z + d3 * u


@njit(nogil=True)
def correlate(rows: Any, start: int, shifts: Any, g: Any, gradient: Any) -> None:
    """gradient[f, t] += sum over p of g[f, p] rows[start + shifts[t] + p]: the gradient of `slide` for its weights."""
    for f in range(0, g.shape[0], 4):
        for t in range(0, shifts.size, 4):
            _add_products(rows, start, shifts[t : t + 4], g[f : f + 4], gradient[f : f + 4, t : t + 4])


@njit(nogil=True, fastmath={"contract", "reassoc"})  # sums in any order: several at once
def _add_products(rows: Any, start: int, shifts: Any, g: Any, gradient: Any) -> None:
    never_inlined()
    a, b = np.uint64(start + shifts[0]), np.uint64(start + shifts[1])
    c, d = np.uint64(start + shifts[2]), np.uint64(start + shifts[3])
    a0 = b0 = c0 = d0 = a1 = b1 = c1 = d1 = rows.dtype.type(0)
    a2 = b2 = c2 = d2 = a3 = b3 = c3 = d3 = rows.dtype.type(0)
    for position in range(g.shape[1]):
        p = np.uint64(position)
        x, y, z, u = rows[a + p], rows[b + p], rows[c + p], rows[d + p]
        g0, g1, g2, g3 = g[0, p], g[1, p], g[2, p], g[3, p]
        a0, b0, c0, d0 = a0 + g0 * x, b0 + g0 * y, c0 + g0 * z, d0 + g0 * u
        a1, b1, c1, d1 = a1 + g1 * x, b1 + g1 * y, c1 + g1 * z, d1 + g1 * u
        a2, b2, c2, d2 = a2 + g2 * x, b2 + g2 * y, c2 + g2 * z, d2 + g2 * u
        a3, b3, c3, d3 = a3 + g3 * x, b3 + g3 * y, c3 + g3 * z, d3 + g3 * u
    sums = ((a0, b0, c0, d0), (a1, b1, c1, d1), (a2, b2, c2, d2), (a3, b3, c3, d3))
    for f in range(4):
        for t in range(4):
            gradient[f, t] += sums[f][t]
