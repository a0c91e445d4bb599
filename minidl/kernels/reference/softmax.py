"""Softmax, its logarithm, and the cross entropy built on it, in readable numpy (or CuPy)."""

from __future__ import annotations

from minidl.kernels import Array, array_module

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
    """logits (n, classes), labels (n,) -> the n losses, and the probabilities (n, classes).

    Errors: IndexError unless 0 <= label < classes for every label.
    """
    lowest, highest = (int(labels.min()), int(labels.max())) if labels.size else (0, -1)
    if lowest < 0 or highest >= logits.shape[1]:
        raise IndexError(
            f"cross_entropy: labels must lie in 0 <= label < {logits.shape[1]}, found {lowest} to {highest}"
        )
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


def attention_block(scores: Array, largest: Array, total: Array, visible: int) -> tuple[Array, Array, Array, Array]:
    """The next block of a softmax over the last axis, from the blocks before it.

    Parameters
        scores    (..., t, s), may be overwritten
        largest   (..., t, 1), the largest score of each row in the blocks before; -inf for none
        total     (..., t, 1), the sum of exp(score - largest) of the blocks before
        visible   number of scores in the first row that count, the first ones; every later row has one more

    Returns the weights exp(scores - largest), which are 0 for hidden scores; the updated largest and total; and the
    factor exp(old largest - new largest), by which earlier sums are multiplied. If all scores of a row are -inf, its
    weights are 0.
    """
    module = array_module(scores)
    scores = _only_visible(scores, visible)
    new = module.maximum(largest, scores.max(axis=-1, keepdims=True))
    origin = module.where(new == -module.inf, scores.dtype.type(0), new)
    weights, shrinkage = module.exp(scores - origin), module.exp(largest - origin)
    return weights, new, total * shrinkage + weights.sum(axis=-1, keepdims=True), shrinkage


def attention_block_backward(
    scores: Array, g: Array, logarithms: Array, means: Array, visible: int
) -> tuple[Array, Array]:
    """Recompute the probabilities exp(scores - logarithms), and return them and the gradient of the scores.

    Parameters
        scores        (..., t, s), may be overwritten
        g             (..., t, s), the gradient with respect to the probabilities, may be overwritten
        logarithms    (..., t, 1), of the sum of a row's exp(score) over all blocks
        means         (..., t, 1), the sum of a row's g times probability over all blocks
        visible       as for `attention_block`
    """
    weights = array_module(scores).exp(_only_visible(scores, visible) - logarithms)
    return weights, weights * (g - means)


def _only_visible(scores: Array, visible: int) -> Array:
    """The scores, with -inf in place of hidden ones."""
    rows, columns = scores.shape[-2:]
    if visible >= columns:
        return scores
    module = array_module(scores)
    counts = module.tril(module.ones((rows, columns), dtype=bool), visible - 1)
    return module.where(counts, scores, -module.inf)
