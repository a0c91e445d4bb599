"""Softmax and the cross entropy built on it: each row is read from memory once and stays in the first-level cache.

If the axis is not the last one in memory, whole rows are processed together: `softmax_columns.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import CONTRACT, REASSOCIATE, compiled, inner
from minidl.kernels.jit.elementary import exp, log
from minidl.kernels.jit.eligible import eligible, fits
from minidl.kernels.jit.function_attributes import never_inlined, wide_vectors, without_nan
from minidl.kernels.jit.memory_order import along_axis, in_shares
from minidl.kernels.jit.softmax_columns import (
    log_softmax_backward_columns,
    log_softmax_columns,
    softmax_backward_columns,
    softmax_columns,
)

__all__ = [
    "attention_block",
    "attention_block_backward",
    "attention_softmax",
    "attention_softmax_backward",
    "cross_entropy",
    "cross_entropy_backward",
    "log_softmax",
    "log_softmax_backward",
    "softmax",
    "softmax_backward",
]

WORTH_A_THREAD = 1 << 17  # attention's scores; their causal softmax takes 160 us, backward 30


def softmax(x: Array, axis: int) -> Array:
    """exp(x) / sum(exp(x))."""
    if not fits(x) or not -x.ndim <= axis < x.ndim:
        return reference.softmax(x, axis)
    result, (numbers, out) = along_axis(axis, x)
    if out.shape[2] > 1:
        softmax_columns(numbers, out)
    else:
        out = out.reshape(out.shape[:2])
        out[...] = numbers.reshape(out.shape)
        _softmax(out, x.dtype.type(1), False, 1)
    return result


def softmax_backward(g: Array, out: Array, axis: int) -> Array:
    """out (g - sum(g out))."""
    if not fits(out, g) or not -g.ndim <= axis < g.ndim:
        return reference.softmax_backward(g, out, axis)
    result, (out, g, gradient) = along_axis(axis, out, g)
    if out.shape[2] > 1:
        softmax_backward_columns(g, out, gradient)
    else:
        shape = out.shape[:2]
        _softmax_backward(g.reshape(shape), out.reshape(shape), gradient.reshape(shape), g.dtype.type(1))
    return result


def log_softmax(x: Array, axis: int) -> Array:
    """x - log(sum(exp(x)))."""
    if not fits(x) or not -x.ndim <= axis < x.ndim:
        return reference.log_softmax(x, axis)
    result, (numbers, out) = along_axis(axis, x)
    if out.shape[2] > 1:
        log_softmax_columns(numbers, out)
    else:
        _log_softmax(numbers.reshape(out.shape[:2]), out.reshape(out.shape[:2]))
    return result


def log_softmax_backward(g: Array, out: Array, axis: int) -> Array:
    """g - exp(out) sum(g)."""
    if not fits(out, g) or not -g.ndim <= axis < g.ndim:
        return reference.log_softmax_backward(g, out, axis)
    result, (out, g, gradient) = along_axis(axis, out, g)
    if out.shape[2] > 1:
        log_softmax_backward_columns(g, out, gradient)
    else:
        shape = out.shape[:2]
        _log_softmax_backward(g.reshape(shape), out.reshape(shape), gradient.reshape(shape))
    return result


def attention_softmax(scores: Array, scale: float, is_causal: bool) -> Array:
    """softmax(scale scores) over the last axis of (..., t, s), in place; causal: 0 for j > i."""
    if not eligible(scores):
        return reference.attention_softmax(scores, scale, is_causal)
    t, s = scores.shape[-2:]
    rows = scores.reshape(-1, s)
    in_shares(scores.size // WORTH_A_THREAD, t, _softmax, rows, scores.dtype.type(scale), is_causal, t)
    return scores


def attention_softmax_backward(g: Array, probabilities: Array, scale: float) -> Array:
    """The gradient with respect to the scores, before their scaling."""
    if not eligible(g, probabilities):
        return reference.attention_softmax_backward(g, probabilities, scale)
    gradient = np.empty_like(g)
    s = g.shape[-1]
    rows = g.reshape(-1, s), probabilities.reshape(-1, s), gradient.reshape(-1, s)
    in_shares(g.size // (4 * WORTH_A_THREAD), 1, _softmax_backward, *rows, g.dtype.type(scale))
    return gradient


def attention_block(scores: Array, largest: Array, total: Array, visible: int) -> tuple[Array, Array, Array, Array]:
    """The next block of a softmax over the last axis, in place of the scores; further parameters as the reference."""
    if not eligible(scores, largest, total):
        return reference.attention_block(scores, largest, total, visible)
    new, sums, shrinkage = np.empty_like(largest), np.empty_like(largest), np.empty_like(largest)
    t, s = scores.shape[-2:]
    before, after = (largest.reshape(-1), total.reshape(-1)), (new.reshape(-1), sums.reshape(-1), shrinkage.reshape(-1))
    _attention_block(scores.reshape(-1, s), *before, *after, visible, t)
    return scores, new, sums, shrinkage


def attention_block_backward(
    scores: Array, g: Array, logarithms: Array, means: Array, visible: int
) -> tuple[Array, Array]:
    """Probabilities and gradient, in place of the scores and of g; further parameters as the reference."""
    if not eligible(scores, g, logarithms, means):
        return reference.attention_block_backward(scores, g, logarithms, means, visible)
    t, s = scores.shape[-2:]
    _attention_block_backward(
        scores.reshape(-1, s), g.reshape(-1, s), logarithms.reshape(-1), means.reshape(-1), visible, t
    )
    return scores, g


def cross_entropy(logits: Array, labels: Array) -> tuple[Array, Array]:
    """logits (n, classes), labels (n,) -> the n losses, and the probabilities (n, classes)."""
    if not eligible(logits):
        return reference.cross_entropy(logits, labels)
    losses, probabilities = np.empty(len(logits), dtype=logits.dtype), logits.copy()
    if not _cross_entropy(probabilities, labels.astype(np.int64, copy=False), losses):
        return reference.cross_entropy(logits, labels)  # which raises the error
    return losses, probabilities


def cross_entropy_backward(g: Array, probabilities: Array, labels: Array) -> Array:
    """g: the gradient with respect to each loss, (n,) or a scalar -> the gradient with respect to the logits."""
    g = np.asarray(g)
    if not eligible(g, probabilities):
        return reference.cross_entropy_backward(g, probabilities, labels)
    gradient = np.empty(probabilities.shape, probabilities.dtype)
    _cross_entropy_backward(g.reshape(-1), probabilities, labels.astype(np.int64, copy=False), gradient)
    return gradient


# The largest of the first n numbers of a row. A row that contains nan still becomes nan altogether, through exp(nan) in
# the sum.
@inner({"nnan", "nsz"})
def _largest(row: Any, n: int) -> Any:
    never_inlined()
    without_nan()
    wide_vectors()
    largest = row[0]
    for j in range(n):
        largest = largest if largest > row[j] else row[j]
    return largest


# In place, so that LLVM need not prove that two arrays do not overlap.
@inner(REASSOCIATE)
def _exponentials(row: Any, n: int, largest: Any, scale: Any) -> Any:
    """Replace every x by exp(scale (x - largest)), and return the sum."""
    wide_vectors()
    total = row.dtype.type(0)
    for j in range(n):
        row[j] = exp(scale * (row[j] - largest))
        total += row[j]
    return total


@inner(REASSOCIATE)
def _sum_of_exponentials(row: Any, largest: Any) -> Any:
    wide_vectors()
    total = row.dtype.type(0)
    for j in range(row.size):
        total += exp(row[j] - largest)
    return total


@compiled(CONTRACT)
def _softmax(x: Any, scale: Any, is_causal: bool, t: int) -> None:
    wide_vectors()
    one, zero = x.dtype.type(1), x.dtype.type(0)
    for i in range(x.shape[0]):
        row = x[i]
        n = min(i % t + 1, row.size) if is_causal else row.size
        inverse = one / _exponentials(row, n, _largest(row, n), scale)
        for j in range(n):
            row[j] *= inverse
        for j in range(n, row.size):
            row[j] = zero


@compiled(REASSOCIATE)
def _softmax_backward(g: Any, out: Any, gradient: Any, scale: Any) -> None:
    wide_vectors()
    for i in range(g.shape[0]):
        mean = g.dtype.type(0)
        for j in range(g.shape[1]):
            mean += g[i, j] * out[i, j]
        for j in range(g.shape[1]):
            gradient[i, j] = scale * out[i, j] * (g[i, j] - mean)


@compiled(CONTRACT)
def _attention_block(
    x: Any, largest: Any, total: Any, new: Any, sums: Any, shrinkage: Any, visible: int, t: int
) -> None:
    wide_vectors()
    zero, one, lowest = x.dtype.type(0), x.dtype.type(1), x.dtype.type(-np.inf)
    for i in range(x.shape[0]):
        row = x[i]
        n = max(0, min(i % t + visible, row.size))
        new[i] = largest[i]
        if n:
            here = _largest(row, n)
            new[i] = here if here > largest[i] else largest[i]
        origin = new[i] if new[i] > lowest else zero
        shrinkage[i] = exp(largest[i] - origin)
        sums[i] = total[i] * shrinkage[i] + _exponentials(row, n, origin, one)
        for j in range(n, row.size):
            row[j] = zero


@compiled(CONTRACT)
def _attention_block_backward(x: Any, g: Any, logarithms: Any, means: Any, visible: int, t: int) -> None:
    wide_vectors()
    zero = x.dtype.type(0)
    for i in range(x.shape[0]):
        n = max(0, min(i % t + visible, x.shape[1]))
        for j in range(n):
            weight = exp(x[i, j] - logarithms[i])
            x[i, j] = weight
            g[i, j] = weight * (g[i, j] - means[i])
        for j in range(n, x.shape[1]):
            x[i, j] = zero
            g[i, j] = zero


@compiled(CONTRACT)
def _log_softmax(x: Any, out: Any) -> None:
    wide_vectors()
    for i in range(x.shape[0]):
        row = x[i]
        largest = _largest(row, row.size)
        shift = log(_sum_of_exponentials(row, largest))
        for j in range(row.size):
            out[i, j] = row[j] - largest - shift


@compiled(REASSOCIATE)
def _log_softmax_backward(g: Any, out: Any, gradient: Any) -> None:
    wide_vectors()
    for i in range(g.shape[0]):
        total = g.dtype.type(0)
        for j in range(g.shape[1]):
            total += g[i, j]
        for j in range(g.shape[1]):
            gradient[i, j] = g[i, j] - exp(out[i, j]) * total


@compiled(CONTRACT)
def _cross_entropy(x: Any, labels: Any, losses: Any) -> bool:
    """Replace the logits x by probabilities; False, with nothing changed, if a label is not one of the classes."""
    wide_vectors()
    for i in range(labels.size):
        if labels[i] < 0 or labels[i] >= x.shape[1]:
            return False
    one = x.dtype.type(1)
    for i in range(x.shape[0]):
        row = x[i]
        largest, chosen = _largest(row, row.size), row[labels[i]]
        total = _exponentials(row, row.size, largest, one)
        losses[i] = log(total) - (chosen - largest)
        inverse = one / total
        for j in range(row.size):
            row[j] *= inverse
    return True


@compiled(CONTRACT)
def _cross_entropy_backward(g: Any, probabilities: Any, labels: Any, gradient: Any) -> None:
    for i in range(probabilities.shape[0]):
        scale = g[i] if g.size > 1 else g[0]
        for j in range(probabilities.shape[1]):
            gradient[i, j] = scale * probabilities[i, j]
        gradient[i, labels[i]] -= scale
