"""The inner loops of convolution: weighted sums of shifted copies of a long row of numbers, and their adjoint.

A padded image, written row by row, is one long row of numbers; each tap of the filter reads it at a different start.
So a convolution is out[f, p] = sum over taps of weights[f, tap] rows[shift of the tap + p], and the windows are never
unfolded. A tile of four filters by three vectors of positions stays in registers while all taps are added: an
instruction that loads serves two that multiply and add. Measured on one core with AVX-512, 16 -> 16 channels of 32x32,
window 3x3: 276 GFLOP/s, as many as the matrix product of large matrices (109 with sums kept in the first cache).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels.jit.compiled import CONTRACT, REASSOCIATE, inner
from minidl.kernels.jit.function_attributes import never_inlined
from minidl.kernels.jit.vectors import load, multiply_add, numbers_of, store, total, wide_vectors, zeros

U = np.uint64  # unsigned indices: numba need not look whether they count from the end


@inner(CONTRACT)
def slide(rows: Any, start: int, shifts: Any, weights: Any, out: Any) -> None:
    """out[f, p] = sum over t of weights[f, t] rows[start + shifts[t] + p]

    The number of f is even; of p, a multiple of three vectors.
    """
    fours = weights.shape[0] - weights.shape[0] % 4
    for f in range(0, fours, 4):
        _slide_4(rows, start, shifts, weights[f : f + 4].reshape(-1), out[f : f + 4].reshape(-1))
    if fours < weights.shape[0]:
        _slide_2(rows, start, shifts, weights[fours:].reshape(-1), out[fours:].reshape(-1))


@inner(CONTRACT)
def _slide_4(rows: Any, start: int, shifts: Any, w: Any, out: Any) -> None:
    never_inlined()
    wide_vectors()
    n, taps, positions = numbers_of(rows), U(shifts.size), U(out.size // 4)
    for position in range(0, positions, U(3) * n):
        p = U(position)
        a0 = a1 = a2 = b0 = b1 = b2 = c0 = c1 = c2 = d0 = d1 = d2 = zeros(rows)
        for tap in range(taps):
            t = U(tap)
            at = U(start) + U(shifts[t]) + p
            x, y, z = load(rows, at), load(rows, at + n), load(rows, at + U(2) * n)
            a, b, c, d = w[t], w[t + taps], w[t + U(2) * taps], w[t + U(3) * taps]
            a0, a1, a2 = multiply_add(a, x, a0), multiply_add(a, y, a1), multiply_add(a, z, a2)
            b0, b1, b2 = multiply_add(b, x, b0), multiply_add(b, y, b1), multiply_add(b, z, b2)
            c0, c1, c2 = multiply_add(c, x, c0), multiply_add(c, y, c1), multiply_add(c, z, c2)
            d0, d1, d2 = multiply_add(d, x, d0), multiply_add(d, y, d1), multiply_add(d, z, d2)
        _store_3(out, p, a0, a1, a2)
        _store_3(out, p + positions, b0, b1, b2)
        _store_3(out, p + U(2) * positions, c0, c1, c2)
        _store_3(out, p + U(3) * positions, d0, d1, d2)


@inner(CONTRACT)
def _slide_2(rows: Any, start: int, shifts: Any, w: Any, out: Any) -> None:
    never_inlined()
    wide_vectors()
    n, taps, positions = numbers_of(rows), U(shifts.size), U(out.size // 2)
    for position in range(0, positions, U(3) * n):
        p = U(position)
        a0 = a1 = a2 = b0 = b1 = b2 = zeros(rows)
        for tap in range(taps):
            t = U(tap)
            at = U(start) + U(shifts[t]) + p
            x, y, z = load(rows, at), load(rows, at + n), load(rows, at + U(2) * n)
            a, b = w[t], w[t + taps]
            a0, a1, a2 = multiply_add(a, x, a0), multiply_add(a, y, a1), multiply_add(a, z, a2)
            b0, b1, b2 = multiply_add(b, x, b0), multiply_add(b, y, b1), multiply_add(b, z, b2)
        _store_3(out, p, a0, a1, a2)
        _store_3(out, p + positions, b0, b1, b2)


@inner()
def _store_3(out: Any, p: int, x: Any, y: Any, z: Any) -> None:
    n = numbers_of(out)
    store(out, p, x)
    store(out, p + n, y)
    store(out, p + U(2) * n, z)


@inner()
def correlate(rows: Any, start: int, shifts: Any, g: Any, gradient: Any) -> None:
    """gradient[f, t] += sum over p of g[f, p] rows[start + shifts[t] + p]: the gradient of `slide` for its weights.

    There are 2 or 4 filters f; a multiple of 3 taps t; positions p for a multiple of three vectors.
    """
    if g.shape[0] == 4:
        _add_products_4(rows, start, shifts, g.reshape(-1), gradient)
    else:
        _add_products_2(rows, start, shifts, g.reshape(-1), gradient)


@inner(REASSOCIATE)
def _add_products_4(rows: Any, start: int, shifts: Any, g: Any, gradient: Any) -> None:
    never_inlined()
    wide_vectors()
    n, positions = numbers_of(rows), U(g.size // 4)
    for t in range(0, shifts.size, 3):
        i, j, k = U(start + shifts[t]), U(start + shifts[t + 1]), U(start + shifts[t + 2])
        a0 = a1 = a2 = b0 = b1 = b2 = c0 = c1 = c2 = d0 = d1 = d2 = zeros(rows)
        for position in range(0, positions, n):
            p = U(position)
            x, y, z = load(rows, i + p), load(rows, j + p), load(rows, k + p)
            a, b = load(g, p), load(g, p + positions)
            a0, a1, a2 = multiply_add(a, x, a0), multiply_add(a, y, a1), multiply_add(a, z, a2)
            b0, b1, b2 = multiply_add(b, x, b0), multiply_add(b, y, b1), multiply_add(b, z, b2)
            c, d = load(g, p + U(2) * positions), load(g, p + U(3) * positions)
            c0, c1, c2 = multiply_add(c, x, c0), multiply_add(c, y, c1), multiply_add(c, z, c2)
            d0, d1, d2 = multiply_add(d, x, d0), multiply_add(d, y, d1), multiply_add(d, z, d2)
        _add_totals(gradient[0, t:], a0, a1, a2)
        _add_totals(gradient[1, t:], b0, b1, b2)
        _add_totals(gradient[2, t:], c0, c1, c2)
        _add_totals(gradient[3, t:], d0, d1, d2)


@inner(REASSOCIATE)
def _add_products_2(rows: Any, start: int, shifts: Any, g: Any, gradient: Any) -> None:
    never_inlined()
    wide_vectors()
    n, positions = numbers_of(rows), U(g.size // 2)
    for t in range(0, shifts.size, 3):
        i, j, k = U(start + shifts[t]), U(start + shifts[t + 1]), U(start + shifts[t + 2])
        a0 = a1 = a2 = b0 = b1 = b2 = zeros(rows)
        for position in range(0, positions, n):
            p = U(position)
            x, y, z = load(rows, i + p), load(rows, j + p), load(rows, k + p)
            a, b = load(g, p), load(g, p + positions)
            a0, a1, a2 = multiply_add(a, x, a0), multiply_add(a, y, a1), multiply_add(a, z, a2)
            b0, b1, b2 = multiply_add(b, x, b0), multiply_add(b, y, b1), multiply_add(b, z, b2)
        _add_totals(gradient[0, t:], a0, a1, a2)
        _add_totals(gradient[1, t:], b0, b1, b2)


@inner()
def _add_totals(gradient: Any, x: Any, y: Any, z: Any) -> None:
    gradient[0] += total(x)
    gradient[1] += total(y)
    gradient[2] += total(z)
