"""The losses of classification: cross entropy, softmax included, and the negative log-likelihood."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from minidl import kernels
from minidl.arguments import whole_number
from minidl.functional.bind import operand
from minidl.functional.dropout import check_probability
from minidl.functional.losses import check_reduction
from minidl.functional.one_type import FLOAT32, converted, in_float32
from minidl.functional.reductions import log_softmax
from minidl.functional.shapes import where
from minidl.kernels import Array, array_module
from minidl.kernels.sixteen_bit import is_floating_point
from minidl.tensor import Tensor, record


def cross_entropy(
    logits: Any,
    labels: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    *,
    axis: int | None = None,
) -> Tensor:
    """-log softmax(logits)[label]; its gradient is softmax(logits) - onehot(labels).

    Parameters
        logits           (n, classes), or (classes,) for one sample; with more axes the classes are on axis 1, as in
                         PyTorch, or on the last axis, (n, t, classes), as in language models
        labels           integers, of the logits' shape without the axis of the classes; or class probabilities,
                         floating-point numbers of the logits' shape
        weight           (classes,): the loss of a sample is multiplied by the weight of its class; not differentiated
        ignore_index     samples with this label have no loss and no gradient, and do not count in the mean
        reduction        "mean": the sum of the losses / the sum of their weights (1 each without `weight`; with class
                         probabilities the number of samples); "sum"; or "none"
        label_smoothing  share of each label, 0 to 1, that is spread evenly over all classes
        axis             the axis of the classes; needed only where the shapes fit both axis 1 and the last one

    The mean of no samples, or of samples that are all ignored, is nan, with gradient 0.

    Raises
        ValueError  shapes that do not fit, an unknown reduction, a smoothing outside 0 to 1
        TypeError   labels that are not integers
        IndexError  a label outside 0 <= label < classes

    >>> round(cross_entropy([[0.0, 0.0]], [1]).item(), 4)  # log 2
    0.6931

    References
        label smoothing: Szegedy et al. (arXiv:1512.00567), section 7
    """
    logits = operand(logits)
    name, z = "cross_entropy", logits.data
    check_reduction(name, reduction, weight)
    if type(ignore_index) is not int:
        ignore_index = whole_number(f"{name}: ignore_index", ignore_index, hint=_IGNORES_NONE)
    labels = labels if isinstance(labels, Tensor) else Tensor(array_module(z).asarray(labels))
    if weight is None and not label_smoothing and axis is None and _is_usual(z, labels.data, ignore_index):
        try:
            return _plain(logits, labels, reduction)
        except IndexError:
            pass  # a label is ignored, or it is wrong: what follows finds out which
    logits = converted(logits, FLOAT32)  # 16 bits are widened: losses are float32 in every case
    check_probability(f"{name}: label_smoothing", label_smoothing)
    if labels.shape == logits.shape and is_floating_point(labels.dtype) and logits.ndim:
        return _of_probabilities(logits, labels, _weights(name, weight, logits, axis), reduction, label_smoothing, axis)
    axis = _classes_axis(name, logits.shape, labels, axis)
    if label_smoothing:
        return _smoothed(logits, labels, weight, ignore_index, reduction, label_smoothing, axis)
    if axis != logits.ndim - 1:
        return nll_loss(log_softmax(logits, axis), labels, weight, ignore_index, reduction, axis=axis)
    shape = logits.shape
    z = logits.data.reshape(-1, shape[-1])
    samples = _Samples(name, z, labels, weight, ignore_index, 1, reduction)
    losses, probabilities = kernels.current().cross_entropy(z, samples.labels)

    def vjp(g: Array, needs: Any) -> tuple[Array, None]:
        gradient = kernels.current().cross_entropy_backward(samples.scaled(g, reduction), probabilities, samples.labels)
        if samples.kept is not None:
            gradient[~samples.kept] = 0
        return gradient.reshape(shape), None

    return record(samples.reduced(losses, reduction), (logits, labels), vjp, saved=(1,))


@in_float32("log_probabilities")
def nll_loss(
    log_probabilities: Any,
    labels: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    *,
    axis: int | None = None,
) -> Tensor:
    """-log_probabilities[label]: the negative log-likelihood of the labels, from the output of `log_softmax`.

    Parameters and errors as for `cross_entropy`; nll_loss(log_softmax(x), labels) is cross_entropy(x, labels).

    >>> nll_loss([[-1.0, -2.0]], [1]).item()
    2.0
    """
    inputs = operand(log_probabilities)
    name, x = "nll_loss", inputs.data
    module = array_module(x)
    check_reduction(name, reduction, weight)
    if type(ignore_index) is not int:
        ignore_index = whole_number(f"{name}: ignore_index", ignore_index, hint=_IGNORES_NONE)
    labels = labels if isinstance(labels, Tensor) else Tensor(module.asarray(labels))
    axis = _classes_axis(name, inputs.shape, labels, axis)
    samples = _Samples(name, x, labels, weight, ignore_index, axis, reduction)
    index = module.expand_dims(samples.labels.reshape(labels.shape), axis)
    losses = -module.take_along_axis(x, index, axis)
    shape = x.shape

    def vjp(g: Array, needs: Any) -> tuple[Array, None]:
        scaled = samples.scaled(g, reduction)
        if samples.kept is not None:
            scaled = module.where(samples.kept, scaled, 0)
        classes = module.arange(shape[axis]).reshape(-1, *(1,) * (len(shape) - 1 - axis))
        slopes = module.broadcast_to(-scaled, samples.labels.shape).reshape(index.shape)
        return module.where(classes == index, slopes, 0), None

    return record(samples.reduced(losses.reshape(-1), reduction), (inputs, labels), vjp, saved=(1,))


# ---- the usual case: logits (n, classes), and all samples have the same weight ----


def _is_usual(z: Array, labels: Array, ignore_index: int) -> bool:
    if z.ndim != 2 or labels.shape != z.shape[:1] or not z.size or labels.dtype.kind not in "iu":
        return False
    return not 0 <= ignore_index < z.shape[1]


def _plain(logits: Tensor, labels: Tensor, reduction: str) -> Tensor:
    """The loss where every label is one of the classes. Errors: IndexError where one is not."""
    z, targets = logits.data, labels.data
    if type(targets) is not type(z):
        targets = array_module(z).asarray(targets)
    losses, probabilities = kernels.current().cross_entropy(z, targets)
    out = losses if reduction == "none" else kernels.uncounted(reduction)(losses)
    scale = 1 / len(z) if reduction == "mean" else 1.0

    def vjp(g: Array, needs: Any) -> tuple[Array, None]:
        return kernels.current().cross_entropy_backward(g * g.dtype.type(scale), probabilities, targets), None

    return record(out, (logits, labels), vjp, saved=(1,))


# ---- weighted or ignored samples ----


class _Samples:
    """The flattened labels, the weight of each sample, and which samples are not ignored (`kept`; None: all)."""

    def __init__(
        self, name: str, x: Array, labels: Tensor, weight: Any, ignore_index: int, axis: int, reduction: str
    ) -> None:
        module, classes = array_module(x), x.shape[axis]
        targets = module.asarray(labels.data).reshape(-1)
        lowest, highest = (int(targets.min()), int(targets.max())) if targets.size else (0, -1)
        self.shape, self.dtype = labels.shape, x.dtype
        self.kept: Array | None = None
        self.weights: Array | None = None
        if lowest < 0 or highest >= classes or lowest <= ignore_index <= highest:
            self.kept = targets != ignore_index
            counted = targets[self.kept]
            if counted.size and (int(counted.min()) < 0 or int(counted.max()) >= classes):
                raise IndexError(
                    f"{name}: labels must lie in 0 <= label < {classes} (the classes), found {int(counted.min())} to "
                    f"{int(counted.max())}; only those equal to ignore_index={ignore_index} are ignored"
                )
            targets = module.where(self.kept, targets, 0)
        self.labels = targets
        if weight is not None:
            weight = _weights(name, weight, Tensor(x), axis)
            self.weights = weight.reshape(-1)[targets]
        if self.kept is not None:
            ones = module.ones(targets.shape, dtype=x.dtype) if self.weights is None else self.weights
            self.weights = module.where(self.kept, ones, 0)
        self.total = targets.size if self.weights is None else float(self.weights.sum(dtype="float64"))
        if reduction == "mean" and (weight is not None or self.total != targets.size):
            _note(self.total, targets.size)

    def reduced(self, losses: Array, reduction: str) -> Array:
        """The losses of the samples, weighted and reduced."""
        module = array_module(losses)
        if self.kept is not None:
            losses = module.where(self.kept, losses, 0)  # 0 times an infinite loss would be nan
        if self.weights is not None:
            losses = losses * self.weights
        if reduction == "none":
            return losses.reshape(self.shape)
        if reduction == "sum":
            return kernels.uncounted("sum")(losses)
        if not self.total:
            return module.asarray(math.nan, dtype=losses.dtype)
        if self.weights is None:
            return kernels.uncounted("mean")(losses)
        return kernels.uncounted("sum")(losses) / self.dtype.type(self.total)

    def scaled(self, g: Array, reduction: str) -> Array:
        """The gradient with respect to each unweighted loss, from g, that with respect to the reduced loss."""
        scale = 1.0 if reduction != "mean" else 1 / self.total if self.total else math.nan
        g = (g * self.dtype.type(scale)).reshape(-1)
        return g if self.weights is None else g * self.weights


# ---- label smoothing, and class probabilities instead of labels ----


def _smoothed(
    logits: Tensor, labels: Tensor, weight: Any, ignore_index: int, reduction: str, smoothing: float, axis: int
) -> Tensor:
    samples = _Samples("cross_entropy", logits.data, labels, weight, ignore_index, axis, reduction)
    module, classes = array_module(logits.data), logits.shape[axis]
    one_hot = module.arange(classes) == samples.labels.reshape(-1, 1)
    spread = (one_hot * (1 - smoothing) + smoothing / classes).astype(logits.dtype)
    if samples.kept is not None:
        spread *= samples.kept.reshape(-1, 1)
    spread = module.moveaxis(spread.reshape(*labels.shape, classes), -1, axis)
    weights = _weights("cross_entropy", weight, logits, axis)
    if weights is not None:
        spread *= weights
    if reduction == "mean" and samples.total:
        spread /= samples.total
    if samples.kept is not None:  # 0 times a logarithm that is not finite would be nan
        logits = where(module.expand_dims(samples.kept.reshape(labels.shape), axis), logits, 0.0)
    losses = -(log_softmax(logits, axis) * spread).sum(axis)
    if reduction == "none":
        return losses
    return losses.sum() + (math.nan if reduction == "mean" and not samples.total else 0.0)


def _of_probabilities(
    logits: Tensor, targets: Tensor, weights: Array | None, reduction: str, smoothing: float, axis: int | None
) -> Tensor:
    axis = _axis_in_range("cross_entropy", logits.shape, axis, min(1, logits.ndim - 1))
    if smoothing:
        targets = targets * (1 - smoothing) + smoothing / logits.shape[axis]
    losses = -(log_softmax(logits, axis) * (targets if weights is None else targets * weights)).sum(axis)
    return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()


# ---- checks ----


def _classes_axis(name: str, shape: tuple[int, ...], labels: Tensor, axis: int | None) -> int:
    """The axis of the classes, counted from 0."""
    without = {k: (*shape[:k], *shape[k + 1 :]) for k in {min(1, len(shape) - 1), len(shape) - 1} if k >= 0}
    if axis is not None:
        axis = _axis_in_range(name, shape, axis, 0)
        without = {axis: (*shape[:axis], *shape[axis + 1 :])}
    if labels.dtype.kind not in "iu" and labels.size:
        raise TypeError(
            f"{name}: labels must be integers, not {labels.dtype}; give them as a list or as an integer array "
            "(Tensor turns a list into float32)" + (_PROBABILITIES if name == "cross_entropy" else "")
        )
    fitting = [k for k, rest in without.items() if labels.shape == rest]
    if len(fitting) == 1:
        if not shape[fitting[0]]:
            raise ValueError(f"{name}: there are no classes: axis {fitting[0]} of the logits {shape} is empty")
        return fitting[0]
    if fitting:
        raise ValueError(
            f"{name}: the classes of logits {shape} with labels {labels.shape} may be on axis 1, as PyTorch's, or on "
            "the last one: pass axis=1 or axis=-1"
        )
    if labels.shape == shape and shape:
        raise ValueError(
            f"{name}: integer labels have the logits' shape {shape}: give the class of each sample, labels.argmax(1)"
            + (_PROBABILITIES if name == "cross_entropy" else "")
        )
    raise ValueError(
        f"{name}: logits (n, classes), labels (n,) expected, or (n, classes, ...) and (n, ...), or (n, t, classes) and "
        f"(n, t); got {shape} and {labels.shape}"
    )


_IGNORES_NONE = "leave it out, or give -100, if no label is ignored"
_PROBABILITIES = ", or class probabilities, floating-point numbers of the logits' shape"


def _axis_in_range(name: str, shape: tuple[int, ...], axis: int | None, default: int) -> int:
    if axis is None:
        return default
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"{name}: axis {axis} is not one of the {len(shape)} axes of logits {shape}")
    return axis % len(shape)


def _weights(name: str, weight: Any, x: Tensor, axis: int | None) -> Array:
    """The weights of the classes, as an array that broadcasts along `axis` of x."""
    if weight is None:
        return None
    axis = _axis_in_range(name, x.shape, axis, min(1, x.ndim - 1))
    data = array_module(x.data).array(operand(weight).data, dtype=x.dtype)  # a copy: the caller may write into its own
    if data.shape != (x.shape[axis],):
        raise ValueError(f"{name}: weight must be ({x.shape[axis]},), one number per class, got {data.shape}")
    return data.reshape(-1, *(1,) * (x.ndim - 1 - axis))


# ---- means over labels of unequal weight, which a strategy that divides a minibatch must know of ----

_notes: ContextVar[list[str] | None] = ContextVar("notes of uneven means", default=None)


@contextmanager
def uneven_means() -> Iterator[list[str]]:
    """Yield a list to which each such mean of `cross_entropy` and `nll_loss` in the block adds what it is a mean of.

    >>> with uneven_means() as over:
    ...     _ = cross_entropy([[0.0, 0.0], [0.0, 0.0]], [1, -100])
    >>> over
    ['1 of 2 labels']
    """
    notes: list[str] = []
    before = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(before)


def _note(total: float, labels: int) -> None:
    """Note a mean in which `labels` labels have the weight `total` together."""
    if (notes := _notes.get()) is not None:
        notes.append(f"{total:g} of {labels} labels" if total == int(total) else f"weights of {total:g} together")
