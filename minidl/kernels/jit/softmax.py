"""Softmax and the cross entropy built on it: each row is read from memory once and stays in the first cache."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import CONTRACT, REASSOCIATE, compiled, inner
from minidl.kernels.jit.elementary import exp
from minidl.kernels.jit.eligible import eligible

__all__ = [
    "attention_softmax",
    "attention_softmax_backward",
    "cross_entropy",
    "cross_entropy_backward",
    "softmax",
    "softmax_backward",
]


def softmax(x: Array, axis: int) -> Array:
    """exp(x) / sum(exp(x)); compiled for the last axis."""
    if not eligible(x) or axis not in (-1, x.ndim - 1):
        return reference.softmax(x, axis)
    out = x.copy()
    _softmax(out.reshape(-1, x.shape[-1]), x.dtype.type(1), False, 1)
    return out


def softmax_backward(g: Array, out: Array, axis: int) -> Array:
    """out (g - sum(g out)); compiled for the last axis."""
    if not eligible(g, out) or axis not in (-1, g.ndim - 1):
        return reference.softmax_backward(g, out, axis)
    gradient = np.empty_like(g)
    d = g.shape[-1]
    _softmax_backward(g.reshape(-1, d), out.reshape(-1, d), gradient.reshape(-1, d), g.dtype.type(1))
    return gradient


def attention_softmax(scores: Array, scale: float, is_causal: bool) -> Array:
    """softmax(scale scores) over the last axis of (..., t, s), which it overwrites; causal: 0 for j > i."""
    if not eligible(scores):
        return reference.attention_softmax(scores, scale, is_causal)
    t, s = scores.shape[-2:]
    _softmax(scores.reshape(-1, s), scores.dtype.type(scale), is_causal, t)
    return scores


def attention_softmax_backward(g: Array, probabilities: Array, scale: float) -> Array:
    """The gradient with respect to the scores, before their scaling."""
    if not eligible(g, probabilities):
        return reference.attention_softmax_backward(g, probabilities, scale)
    gradient = np.empty_like(g)
    s = g.shape[-1]
    _softmax_backward(g.reshape(-1, s), probabilities.reshape(-1, s), gradient.reshape(-1, s), g.dtype.type(scale))
    return gradient


def cross_entropy(logits: Array, labels: Array) -> tuple[Array, Array]:
    """logits (n, classes), labels (n,) -> the n losses, and the probabilities (n, classes)."""
    if not eligible(logits):
        return reference.cross_entropy(logits, labels)
    losses, probabilities = np.empty(len(logits), dtype=logits.dtype), logits.copy()
    _cross_entropy(probabilities, labels.astype(np.int64, copy=False), losses)
    return losses, probabilities


def cross_entropy_backward(g: Array, probabilities: Array, labels: Array) -> Array:
    """g: the gradient with respect to each loss, (n,) or a scalar -> the gradient with respect to the logits."""
    g = np.asarray(g)
    if not eligible(g, probabilities):
        return reference.cross_entropy_backward(g, probabilities, labels)
    gradient = np.empty_like(probabilities)
    _cross_entropy_backward(g.reshape(-1), probabilities, labels.astype(np.int64, copy=False), gradient)
    return gradient


# The largest number of a row: with nnan LLVM compares sixteen at once. A row that contains nan still becomes nan
# altogether, through exp(nan) in the sum.
@inner({"nnan", "nsz"})
def _largest(row: Any, n: int) -> Any:
    largest = row[0]
    for j in range(n):
        largest = largest if largest > row[j] else row[j]
    return largest


# In place, so that LLVM need not prove that two arrays do not overlap.
@inner(REASSOCIATE)
def _exponentials(row: Any, n: int, largest: Any, scale: Any) -> Any:
    """Replace every x by exp(scale (x - largest)), and return the sum."""
    total = row.dtype.type(0)
    for j in range(n):
        row[j] = exp(scale * (row[j] - largest))
        total += row[j]
    return total


@compiled(CONTRACT)
def _softmax(x: Any, scale: Any, is_causal: bool, t: int) -> None:
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
    for i in range(g.shape[0]):
        mean = g.dtype.type(0)
        for j in range(g.shape[1]):
            mean += g[i, j] * out[i, j]
        for j in range(g.shape[1]):
            gradient[i, j] = scale * out[i, j] * (g[i, j] - mean)


@compiled(CONTRACT)
def _cross_entropy(x: Any, labels: Any, losses: Any) -> None:
    one = x.dtype.type(1)
    for i in range(x.shape[0]):
        row = x[i]
        largest, chosen = _largest(row, row.size), row[labels[i]]
        total = _exponentials(row, row.size, largest, one)
        losses[i] = math.log(total) - (chosen - largest)
        inverse = one / total
        for j in range(row.size):
            row[j] *= inverse


@compiled(CONTRACT)
def _cross_entropy_backward(g: Any, probabilities: Any, labels: Any, gradient: Any) -> None:
    for i in range(probabilities.shape[0]):
        scale = g[i] if g.size > 1 else g[0]
        for j in range(probabilities.shape[1]):
            gradient[i, j] = scale * probabilities[i, j]
        gradient[i, labels[i]] -= scale
