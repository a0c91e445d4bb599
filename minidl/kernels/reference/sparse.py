"""Logistic regression on sparse rows, in readable numpy (or CuPy)."""

from __future__ import annotations

from minidl.kernels import Array, array_module

__all__ = ["sparse_logistic_epoch"]


def sparse_logistic_epoch(
    weights: Array, values: Array, columns: Array, starts: Array, labels: Array, lr: float
) -> float:
    """Run one pass of SGD over sparse rows x with labels y of -1 or 1, one row per step; return the sum of the losses.

    weights (d,) is updated in place. Row i has the numbers `values[starts[i]:starts[i + 1]]` in the columns
    `columns[starts[i]:starts[i + 1]]` (CSR); rows i to j - 1 are passed as `starts[i:j + 1]` and `labels[i:j]`.

    The loss of a row, log(1 + exp(-y x.w)), is computed before its step, w += lr y / (1 + exp(y x.w)) x. A step reads
    and writes the row's columns only, without a lock, so that several processes may train the same weights. With lr = 0
    the weights do not change, and the sum is their loss.
    """
    module = array_module(weights)
    total = 0.0
    for row in range(len(labels)):
        own = slice(int(starts[row]), int(starts[row + 1]))
        margin = labels[row] * (values[own] * weights[columns[own]]).sum()
        other = module.exp(-abs(margin))  # never overflows
        total += float(module.maximum(-margin, 0.0) + module.log1p(other))
        slope = (other if margin > 0 else 1.0) / (1.0 + other)  # 1 / (1 + exp(margin))
        module.add.at(weights, columns[own], (values[own] * (slope * labels[row] * lr)).astype(weights.dtype))
    return total
