"""Softmax over the middle axis of (outer, n, inner): adjacent numbers are processed together.

A block of columns is read three times (maximum, sum, result), the last two times from the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels.jit.compiled import CONTRACT, compiled, inner
from minidl.kernels.jit.elementary import exp, log
from minidl.kernels.jit.function_attributes import never_inlined, wide_vectors
from minidl.kernels.jit.rows import copy

NARROWEST, NUMBERS = 256, 8192  # columns in a block at least, and numbers in it where there are few rows


@inner()
def _block(n: int, columns: int) -> int:
    return min(columns, max(NARROWEST, NUMBERS // n))


@compiled(CONTRACT)
def softmax_columns(x: Any, out: Any) -> None:
    outer, n, columns = x.shape
    block = _block(n, columns)
    largest, total = np.empty(block, x.dtype), np.empty(block, x.dtype)
    for i in range(outer):
        for start in range(0, columns, block):
            end = min(start + block, columns)
            _largest_of_each(x[i], start, end, largest)
            total[:] = 0
            for j in range(n):
                _exponentials(x[i, j, start:end], largest, out[i, j, start:end], total)
            for j in range(n):
                _divide(out[i, j, start:end], total)


@compiled(CONTRACT)
def log_softmax_columns(x: Any, out: Any) -> None:
    outer, n, columns = x.shape
    block = _block(n, columns)
    largest, total = np.empty(block, x.dtype), np.empty(block, x.dtype)
    for i in range(outer):
        for start in range(0, columns, block):
            end = min(start + block, columns)
            _largest_of_each(x[i], start, end, largest)
            total[:] = 0
            for j in range(n):
                _add_exponentials(x[i, j, start:end], largest, total)
            _logarithms(total)
            for j in range(n):
                _subtract(x[i, j, start:end], largest, total, out[i, j, start:end])


@compiled(CONTRACT)
def softmax_backward_columns(g: Any, out: Any, gradient: Any) -> None:
    outer, n, columns = g.shape
    block = _block(n, columns)
    mean = np.empty(block, g.dtype)
    for i in range(outer):
        for start in range(0, columns, block):
            end = min(start + block, columns)
            mean[:] = 0
            for j in range(n):
                _add_products(g[i, j, start:end], out[i, j, start:end], mean)
            for j in range(n):
                _softmax_gradient(g[i, j, start:end], out[i, j, start:end], mean, gradient[i, j, start:end])


@compiled(CONTRACT)
def log_softmax_backward_columns(g: Any, out: Any, gradient: Any) -> None:
    outer, n, columns = g.shape
    block = _block(n, columns)
    total = np.empty(block, g.dtype)
    for i in range(outer):
        for start in range(0, columns, block):
            end = min(start + block, columns)
            total[:] = 0
            for j in range(n):
                _add(g[i, j, start:end], total)
            for j in range(n):
                _log_softmax_gradient(g[i, j, start:end], out[i, j, start:end], total, gradient[i, j, start:end])


# ---- one row of a block, in separate functions: with few arrays LLVM makes vector instructions ----


@inner()
def _largest_of_each(x: Any, start: int, end: int, largest: Any) -> None:
    """The largest number of each column; any number if the column contains nan."""
    copy(x[0, start:end], largest[: end - start])
    for j in range(1, x.shape[0]):
        _take_larger(x[j, start:end], largest)


@inner()
def _take_larger(row: Any, largest: Any) -> None:
    never_inlined()
    wide_vectors()
    for w in range(row.size):
        largest[w] = largest[w] if largest[w] > row[w] else row[w]


@inner(CONTRACT)
def _exponentials(row: Any, largest: Any, out: Any, total: Any) -> None:
    never_inlined()
    wide_vectors()
    for w in range(row.size):
        power = exp(row[w] - largest[w])
        out[w] = power
        total[w] += power


@inner(CONTRACT)
def _add_exponentials(row: Any, largest: Any, total: Any) -> None:
    never_inlined()
    wide_vectors()
    for w in range(row.size):
        total[w] += exp(row[w] - largest[w])


@inner(CONTRACT)
def _logarithms(total: Any) -> None:
    never_inlined()
    wide_vectors()
    for w in range(total.size):
        total[w] = log(total[w])


@inner()
def _divide(out: Any, total: Any) -> None:
    never_inlined()
    wide_vectors()
    for w in range(out.size):
        out[w] /= total[w]


@inner()
def _subtract(row: Any, largest: Any, logarithm: Any, out: Any) -> None:
    never_inlined()
    wide_vectors()
    for w in range(row.size):
        out[w] = (row[w] - largest[w]) - logarithm[w]


@inner(CONTRACT)
def _add_products(g: Any, out: Any, mean: Any) -> None:
    never_inlined()
    wide_vectors()
    for w in range(g.size):
        mean[w] += g[w] * out[w]


@inner()
def _add(g: Any, total: Any) -> None:
    never_inlined()
    wide_vectors()
    for w in range(g.size):
        total[w] += g[w]


@inner(CONTRACT)
def _softmax_gradient(g: Any, out: Any, mean: Any, gradient: Any) -> None:
    never_inlined()
    wide_vectors()
    for w in range(g.size):
        gradient[w] = out[w] * (g[w] - mean[w])


@inner(CONTRACT)
def _log_softmax_gradient(g: Any, out: Any, total: Any, gradient: Any) -> None:
    never_inlined()
    wide_vectors()
    for w in range(g.size):
        gradient[w] = g[w] - exp(out[w]) * total[w]
