"""Softmax, its logarithm, and the cross entropy built on it, in readable numpy (or CuPy)."""

from __future__ import annotations

from minidl.kernels import Array, array_module

__all__ = [
    "attention_softmax",
    "attention_softmax_backward",
    "cross_entropy",
    "cross_entropy_backward",
    "log_softmax",
    "log_softmax_backward",
    "softmax",
    "softmax_backward",
]


def softmax(x: Array, axis: int) -> Array:
    if not x.size:
        return x.copy()
    powers = array_module(x).exp(x - x.max(axis=axis, keepdims=True))
    powers /= powers.sum(axis=axis, keepdims=True)
    return powers


def softmax_backward(g: Array, out: Array, axis: int) -> Array:
    return out * (g - (g * out).sum(axis=axis, keepdims=True))


def log_softmax(x: Array, axis: int) -> Array:
    if not x.size:
        return x.copy()
    module = array_module(x)
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - module.log(module.exp(shifted).sum(axis=axis, keepdims=True))


def log_softmax_backward(g: Array, out: Array, axis: int) -> Array:
    return g - array_module(out).exp(out) * g.sum(axis=axis, keepdims=True)


def cross_entropy(logits: Array, labels: Array) -> tuple[Array, Array]:
    """logits (n, classes), labels (n,) -> the n losses, and the probabilities (n, classes)."""
    log_probabilities = log_softmax(logits, 1)
    module = array_module(logits)
    return -log_probabilities[module.arange(len(labels)), labels], module.exp(log_probabilities)


def cross_entropy_backward(g: Array, probabilities: Array, labels: Array) -> Array:
    """g: the gradient with respect to each loss, (n,) or a scalar -> the gradient with respect to the logits."""
    gradient = probabilities.copy()
    gradient[array_module(labels).arange(len(labels)), labels] -= 1
    gradient *= g.reshape(-1, 1)
    return gradient


def attention_softmax(scores: Array, scale: float, is_causal: bool) -> Array:
    """softmax(scale scores) over the last axis of (..., t, s), which it may overwrite; causal: 0 for j > i."""
    scores *= scale
    if is_causal:
        module = array_module(scores)
        future = module.triu(module.ones(scores.shape[-2:], dtype=bool), 1)
        scores = module.where(future, -module.inf, scores)
    return softmax(scores, -1)


def attention_softmax_backward(g: Array, probabilities: Array, scale: float) -> Array:
    """The gradient with respect to the scores, before their scaling."""
    gradient = softmax_backward(g, probabilities, -1)
    gradient *= scale
    return gradient
