"""Running sums, and products: every number depends on the previous one, so that several rows are processed together."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels.jit.compiled import compiled
from minidl.kernels.jit.rows import copy


@compiled()
def running_sums(x: Any, backwards: bool, out: Any) -> None:
    """x (outer, n, inner) -> out, of the same shape: the sums along n up to each number, kept in float64."""
    outer, n, inner = x.shape
    first, step = (n - 1, -1) if backwards else (0, 1)
    if inner == 1:
        for o in range(outer):
            total = 0.0
            for k in range(n):
                total += x[o, first + step * k, 0]
                out[o, first + step * k, 0] = total
        return
    totals = np.empty(inner, np.float64)
    for o in range(outer):
        totals[:] = 0.0
        for k in range(n):
            row, into = x[o, first + step * k], out[o, first + step * k]
            for j in range(inner):
                totals[j] += row[j]
                into[j] = totals[j]


@compiled()
def product_of_each_row(x: Any, out: Any) -> None:
    """x (a, r) -> out (a,). Four rows at a time; the numbers of a row in their order."""
    rows, length = x.shape
    whole = rows - rows % 4
    one = x.dtype.type(1)
    for i in range(0, whole, 4):
        p, q, r, s = one, one, one, one
        for j in range(length):
            p *= x[i, j]
            q *= x[i + 1, j]
            r *= x[i + 2, j]
            s *= x[i + 3, j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = p, q, r, s
    for i in range(whole, rows):
        p = one
        for j in range(length):
            p *= x[i, j]
        out[i] = p


@compiled()
def product_of_rows(x: Any, out: Any) -> None:
    """x (a, r, b) -> out (a, b)."""
    matrices, rows, length = x.shape
    for i in range(matrices):
        into = out[i]
        copy(x[i, 0], into)
        for k in range(1, rows):
            row = x[i, k]
            for j in range(length):
                into[j] *= row[j]
