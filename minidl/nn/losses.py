"""Losses as modules, for programs in PyTorch's style; each calls the function of its docstring.

>>> criterion = CrossEntropyLoss(label_smoothing=0.1)
>>> round(criterion([[0.0, 0.0]], [1]).item(), 4)
0.6931
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl import functional as F
from minidl.kernels import Array
from minidl.nn.module import Module
from minidl.nn.parameter import Buffer
from minidl.tensor import Tensor


class CrossEntropyLoss(Module):
    """`functional.cross_entropy`; `weight` is in the state_dict."""

    def __init__(
        self,
        weight: Any = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        *,
        axis: int | None = None,
    ) -> None:
        self.weight = _class_weight("CrossEntropyLoss", weight)
        self.ignore_index, self.reduction = ignore_index, reduction
        self.label_smoothing, self.axis = label_smoothing, axis

    def forward(self, logits: Any, labels: Any) -> Tensor:
        return F.cross_entropy(
            logits, labels, self.weight, self.ignore_index, self.reduction, self.label_smoothing, axis=self.axis
        )

    def label_weights(self, labels: Array) -> Array:
        """How much each label counts in the mean: the weight of its class; 0 where it is ignored."""
        return _label_weights(labels, self.weight, self.ignore_index)


class NLLLoss(Module):
    """`functional.nll_loss`; `weight` is in the state_dict."""

    def __init__(
        self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean", *, axis: int | None = None
    ) -> None:
        self.weight = _class_weight("NLLLoss", weight)
        self.ignore_index, self.reduction, self.axis = ignore_index, reduction, axis

    def forward(self, log_probabilities: Any, labels: Any) -> Tensor:
        return F.nll_loss(log_probabilities, labels, self.weight, self.ignore_index, self.reduction, axis=self.axis)

    def label_weights(self, labels: Array) -> Array:
        """As for `CrossEntropyLoss`."""
        return _label_weights(labels, self.weight, self.ignore_index)


class BCEWithLogitsLoss(Module):
    """`functional.binary_cross_entropy_with_logits`; the weights are in the state_dict."""

    def __init__(self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> None:
        self.weight, self.reduction, self.pos_weight = _buffer(weight), reduction, _buffer(pos_weight)

    def forward(self, logits: Any, targets: Any) -> Tensor:
        return F.binary_cross_entropy_with_logits(logits, targets, self.weight, self.reduction, self.pos_weight)


class MSELoss(Module):
    """`functional.mse_loss`."""

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, x: Any, target: Any) -> Tensor:
        return F.mse_loss(x, target, self.reduction)


class L1Loss(Module):
    """`functional.l1_loss`."""

    def __init__(self, reduction: str = "mean") -> None:
        self.reduction = reduction

    def forward(self, x: Any, target: Any) -> Tensor:
        return F.l1_loss(x, target, self.reduction)


def _buffer(weight: Any) -> Buffer | None:
    return None if weight is None else Buffer(weight)


def _label_weights(labels: Array, weight: Buffer | None, ignore_index: int) -> Array:
    if labels.dtype.kind not in "iu":  # class probabilities: their mean is over the samples
        return np.ones(len(labels))
    counts = labels != ignore_index
    if weight is None:
        return counts
    return weight.numpy().take(labels, mode="clip") * counts  # the loss raises for labels out of range


def _class_weight(name: str, weight: Any) -> Buffer | None:
    kept = _buffer(weight)
    if kept is not None and kept.ndim != 1:
        raise ValueError(
            f"{name}: weight is one number per class, not of shape {kept.shape}; the loss of predictions takes two "
            f"calls: {name}()(predictions, labels)"
        )
    return kept
