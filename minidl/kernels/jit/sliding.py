"""The inner loops of convolution: weighted sums of shifted copies of a long row of numbers, and their adjoint.

A padded image, written row by row, is one long row of numbers; each tap of the filter reads it at a different start.
So a convolution is out[f, p] += weight[f, tap] rows[shift of the tap + p]; done for 4 filters and 8 taps at a time it
takes 32 multiply-adds for 12 loads and 4 stores, and the windows are never unfolded. Measured on one core with AVX-512,
16 -> 16 channels of 32x32, window 3x3: 87 GFLOP/s (80 with 4 taps, 63 with 12); the matrix product with the unfolded
windows reaches 65, and unfolding takes as long again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels.jit.compiled import CONTRACT, REASSOCIATE, inner
from minidl.kernels.jit.never_inlined import never_inlined


@inner(CONTRACT)
def slide(rows: Any, start: int, shifts: Any, weights: Any, out: Any) -> None:
    """out[f, p] = sum over t of weights[f, t] rows[start + shifts[t] + p]

    No zero taps fill up the last eight: 0 times infinity is nan.
    """
    never_inlined()
    filters, taps = weights.shape
    fours, eights = filters - filters % 4, taps - taps % 8
    for f in range(0, fours, 4):
        four, w = out[f : f + 4], weights[f : f + 4]
        four[:] = 0
        for t in range(0, eights, 8):
            _add_8_taps(rows, start, shifts[t : t + 8], w[:, t : t + 8], four)
        rest = eights
        if taps - eights >= 4:
            _add_4_taps(rows, start, shifts[eights : eights + 4], w[:, eights : eights + 4], four)
            rest = eights + 4
        for t in range(rest, taps):
            _add_tap(rows, start + shifts[t], w[:, t], four)
    for f in range(fours, filters):
        out[f] = 0
        for t in range(0, eights, 8):
            _add_8_taps_of_one(rows, start, shifts[t : t + 8], weights[f, t : t + 8], out[f])
        for t in range(eights, taps):
            _add_tap_of_one(rows, start + shifts[t], weights[f, t], out[f])


# Unsigned indices: numba need not look whether they count from the end, which would keep LLVM from vectors. One array
# `out`, not four rows of it: the fewer arrays, the fewer checks that they do not overlap.
@inner(CONTRACT)
def _add_8_taps(rows: Any, start: int, shifts: Any, w: Any, out: Any) -> None:
    never_inlined()
    a, b = np.uint64(start + shifts[0]), np.uint64(start + shifts[1])
    c, d = np.uint64(start + shifts[2]), np.uint64(start + shifts[3])
    e, f = np.uint64(start + shifts[4]), np.uint64(start + shifts[5])
    g, h = np.uint64(start + shifts[6]), np.uint64(start + shifts[7])
    a0, b0, c0, d0, e0, f0, g0, h0 = w[0, 0], w[0, 1], w[0, 2], w[0, 3], w[0, 4], w[0, 5], w[0, 6], w[0, 7]
    a1, b1, c1, d1, e1, f1, g1, h1 = w[1, 0], w[1, 1], w[1, 2], w[1, 3], w[1, 4], w[1, 5], w[1, 6], w[1, 7]
    a2, b2, c2, d2, e2, f2, g2, h2 = w[2, 0], w[2, 1], w[2, 2], w[2, 3], w[2, 4], w[2, 5], w[2, 6], w[2, 7]
    a3, b3, c3, d3, e3, f3, g3, h3 = w[3, 0], w[3, 1], w[3, 2], w[3, 3], w[3, 4], w[3, 5], w[3, 6], w[3, 7]
    for position in range(out.shape[1]):
        p = np.uint64(position)
        s, t, u, v = rows[a + p], rows[b + p], rows[c + p], rows[d + p]
        m, x, y, z = rows[e + p], rows[f + p], rows[g + p], rows[h + p]
        out[0, p] = out[0, p] + a0 * s + b0 * t + c0 * u + d0 * v + e0 * m + f0 * x + g0 * y + h0 * z
        out[1, p] = out[1, p] + a1 * s + b1 * t + c1 * u + d1 * v + e1 * m + f1 * x + g1 * y + h1 * z
        out[2, p] = out[2, p] + a2 * s + b2 * t + c2 * u + d2 * v + e2 * m + f2 * x + g2 * y + h2 * z
        out[3, p] = out[3, p] + a3 * s + b3 * t + c3 * u + d3 * v + e3 * m + f3 * x + g3 * y + h3 * z


@inner(CONTRACT)
def _add_4_taps(rows: Any, start: int, shifts: Any, w: Any, out: Any) -> None:
    never_inlined()
    a, b = np.uint64(start + shifts[0]), np.uint64(start + shifts[1])
    c, d = np.uint64(start + shifts[2]), np.uint64(start + shifts[3])
    a0, b0, c0, d0, a1, b1, c1, d1 = w[0, 0], w[0, 1], w[0, 2], w[0, 3], w[1, 0], w[1, 1], w[1, 2], w[1, 3]
    a2, b2, c2, d2, a3, b3, c3, d3 = w[2, 0], w[2, 1], w[2, 2], w[2, 3], w[3, 0], w[3, 1], w[3, 2], w[3, 3]
    for position in range(out.shape[1]):
        p = np.uint64(position)
        s, t, u, v = rows[a + p], rows[b + p], rows[c + p], rows[d + p]
        out[0, p] = out[0, p] + a0 * s + b0 * t + c0 * u + d0 * v
        out[1, p] = out[1, p] + a1 * s + b1 * t + c1 * u + d1 * v
        out[2, p] = out[2, p] + a2 * s + b2 * t + c2 * u + d2 * v
        out[3, p] = out[3, p] + a3 * s + b3 * t + c3 * u + d3 * v


@inner(CONTRACT)
def _add_tap(rows: Any, start: int, w: Any, out: Any) -> None:
    never_inlined()
    a, w0, w1, w2, w3 = np.uint64(start), w[0], w[1], w[2], w[3]
    for position in range(out.shape[1]):
        p = np.uint64(position)
        s = rows[a + p]
        out[0, p] += w0 * s
        out[1, p] += w1 * s
        out[2, p] += w2 * s
        out[3, p] += w3 * s


@inner(CONTRACT)
def _add_8_taps_of_one(rows: Any, start: int, shifts: Any, w: Any, out: Any) -> None:
    never_inlined()
    a, b = np.uint64(start + shifts[0]), np.uint64(start + shifts[1])
    c, d = np.uint64(start + shifts[2]), np.uint64(start + shifts[3])
    e, f = np.uint64(start + shifts[4]), np.uint64(start + shifts[5])
    g, h = np.uint64(start + shifts[6]), np.uint64(start + shifts[7])
    w0, w1, w2, w3, w4, w5, w6, w7 = w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
    for position in range(out.size):
        p = np.uint64(position)
        s = w0 * rows[a + p] + w1 * rows[b + p] + w2 * rows[c + p] + w3 * rows[d + p]
        t = w4 * rows[e + p] + w5 * rows[f + p] + w6 * rows[g + p] + w7 * rows[h + p]
        out[p] += s + t


@inner(CONTRACT)
def _add_tap_of_one(rows: Any, start: int, w: Any, out: Any) -> None:
    never_inlined()
    a = np.uint64(start)
    for position in range(out.size):
        p = np.uint64(position)
        out[p] += w * rows[a + p]


@inner()
def correlate(rows: Any, start: int, shifts: Any, g: Any, gradient: Any) -> None:
    """gradient[f, t] += sum over p of g[f, p] rows[start + shifts[t] + p]: the gradient of `slide` for its weights.

    4 divides the number of t.
    """
    fours = g.shape[0] - g.shape[0] % 4
    for t in range(0, shifts.size, 4):
        for f in range(0, fours, 4):
            _add_products(rows, start, shifts[t : t + 4], g[f : f + 4], gradient[f : f + 4, t : t + 4])
        for f in range(fours, g.shape[0]):
            _add_products_of_one(rows, start, shifts[t : t + 4], g[f], gradient[f, t : t + 4])


@inner(REASSOCIATE)  # sums in any order: several at once
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


@inner(REASSOCIATE)
def _add_products_of_one(rows: Any, start: int, shifts: Any, g: Any, gradient: Any) -> None:
    never_inlined()
    a, b = np.uint64(start + shifts[0]), np.uint64(start + shifts[1])
    c, d = np.uint64(start + shifts[2]), np.uint64(start + shifts[3])
    x = y = z = u = rows.dtype.type(0)
    for position in range(g.size):
        p = np.uint64(position)
        x, y, z, u = x + g[p] * rows[a + p], y + g[p] * rows[b + p], z + g[p] * rows[c + p], u + g[p] * rows[d + p]
    gradient[0] += x
    gradient[1] += y
    gradient[2] += z
    gradient[3] += u
