"""Logistic regression on sparse rows, compiled: fetching the weights from memory takes most of a step's time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minidl.kernels import Array, reference
from minidl.kernels.jit.compiled import REASSOCIATE, compiled
from minidl.kernels.jit.eligible import eligible

__all__ = ["sparse_logistic_epoch"]


def sparse_logistic_epoch(
    weights: Array, values: Array, columns: Array, starts: Array, labels: Array, lr: float
) -> float:
    """One pass of SGD over sparse rows with labels of -1 or 1; see `reference/sparse.py`."""
    indices = all(type(a) is np.ndarray and a.dtype.kind == "i" and a.flags.c_contiguous for a in (columns, starts))
    if not indices or not eligible(weights, values, labels):
        return reference.sparse_logistic_epoch(weights, values, columns, starts, labels, lr)
    return float(_sparse_logistic_epoch(weights, values, columns, starts, labels, float(lr)))


@compiled(REASSOCIATE)
def _sparse_logistic_epoch(weights: Any, values: Any, columns: Any, starts: Any, labels: Any, lr: float) -> float:
    total = 0.0
    for row in range(labels.size):
        first, last = starts[row], starts[row + 1]
        product = weights.dtype.type(0)
        for i in range(first, last):
            product += values[i] * weights[columns[i]]
        margin = float(labels[row] * product)
        other = math.exp(-abs(margin))
        total += max(-margin, 0.0) + math.log1p(other)
        slope = (other if margin > 0 else 1.0) / (1.0 + other)
        step = weights.dtype.type(slope * labels[row] * lr)
        for i in range(first, last):
            weights[columns[i]] += step * values[i]
    return total
