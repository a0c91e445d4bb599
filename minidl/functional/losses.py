"""The losses: cross entropy (with the softmax in it) and the mean squared error."""

from __future__ import annotations

from typing import Any

from minidl import kernels
from minidl.functional.bind import operand, unbroadcast
from minidl.kernels import Array
from minidl.tensor import Tensor, record


def cross_entropy(logits: Any, labels: Any, reduction: str = "mean") -> Tensor:
    """-log softmax(logits)[label], as one node whose gradient is softmax(logits) - onehot(labels).

    logits: (n, classes); labels: (n,) integers; reduction: "mean" over the n samples, "sum", or "none".
    Errors: ValueError for shapes or a reduction that do not fit, TypeError for labels that are not integers,
    IndexError for a label outside 0 <= label < classes.

    >>> round(cross_entropy([[0.0, 0.0]], [1]).item(), 4)  # log 2
    0.6931
    """
    logits = operand(logits)
    z = logits.data
    labels = labels if isinstance(labels, Tensor) else Tensor(kernels.array_module(z).asarray(labels))
    targets = kernels.array_module(z).asarray(labels.data)
    if z.ndim != 2 or targets.shape != z.shape[:1]:
        raise ValueError(f"cross_entropy: logits (n, classes), labels (n,) expected, got {z.shape} and {targets.shape}")
    if targets.dtype.kind not in "iu" and targets.size:
        raise TypeError(f"cross_entropy: labels must be integers, not {targets.dtype}")
    if targets.size and (int(targets.min()) < 0 or int(targets.max()) >= z.shape[1]):
        raise IndexError(
            f"cross_entropy: labels must lie in 0 <= label < {z.shape[1]} (the classes), found {int(targets.min())} to "
            f"{int(targets.max())}"
        )
    losses, probabilities = kernels.current().cross_entropy(z, targets)
    scale = {"mean": 1 / max(len(z), 1), "sum": 1.0, "none": 1.0}.get(reduction)
    if scale is None:
        raise ValueError(f"cross_entropy: reduction must be 'mean', 'sum' or 'none', not {reduction!r}")
    out = losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()

    def vjp(g: Array, needs: Any) -> tuple[Array, None]:
        return kernels.current().cross_entropy_backward(g * z.dtype.type(scale), probabilities, targets), None

    return record(out, (logits, labels), vjp, saved=(1,))


def mse_loss(x: Any, target: Any, reduction: str = "mean") -> Tensor:
    """(x - target)**2, averaged over all elements ("mean"), summed ("sum") or as it is ("none").

    x, target: of one shape. Errors: ValueError for two shapes, or another reduction.

    >>> mse_loss([1.0, 2.0], [1.0, 4.0]).item()
    2.0
    """
    x, target = operand(x, target), operand(target, x)
    if x.shape != target.shape:
        raise ValueError(f"mse_loss: input has shape {x.shape}, target has shape {target.shape}; they must be equal")
    difference = x.data - target.data
    squares = difference * difference
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"mse_loss: reduction must be 'mean', 'sum' or 'none', not {reduction!r}")
    out = squares if reduction == "none" else squares.mean() if reduction == "mean" else squares.sum()
    scale = 2 / max(squares.size, 1) if reduction == "mean" else 2

    def vjp(g: Array, needs: Any) -> tuple[Array, Array]:
        gradient = g * scale * difference
        return needs[0] and unbroadcast(gradient, x.data), needs[1] and unbroadcast(-gradient, target.data)

    return record(out, (x, target), vjp)
