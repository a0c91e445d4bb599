"""Embedding, as one node: rows of a weight matrix by index, as `linear` computes them for one-hot rows."""

from __future__ import annotations

from typing import Any

from minidl import kernels
from minidl.arguments import whole_number
from minidl.functional.bind import operand
from minidl.kernels import Array
from minidl.tensor import Tensor, record


def embedding(indices: Any, weight: Any, padding_idx: int | None = None) -> Tensor:
    """The rows of `weight` with the given indices.

    indices: integers of any shape; weight: (n, d). Returns (*indices.shape, d).
    padding_idx: a row that gets no gradient, such as that of the padding symbol; None: every row gets one.
    Errors: TypeError for indices that are not integers, IndexError for one outside 0 <= i < n, ValueError for a weight
    that is not a matrix.

    >>> import numpy as np
    >>> embedding(np.array([2, 0]), weight=[[1.0, 1.5], [2.0, 2.5], [3.0, 3.5]])
    Tensor([[3. , 3.5],
            [1. , 1.5]], float32)
    """
    indices = indices if isinstance(indices, Tensor) else Tensor(kernels.new_array_module().asarray(indices))
    weight = operand(weight)
    rows, w = indices.data, weight.data
    if w.ndim != 2:
        raise ValueError(f"embedding: weight (n, d) expected, one row for each index, got shape {w.shape}")
    if rows.dtype.kind not in "iu":
        raise TypeError(f"embedding: indices must be integers, not {rows.dtype}")
    if rows.size and (int(rows.min()) < 0 or int(rows.max()) >= len(w)):
        raise IndexError(
            f"embedding: indices must lie in 0 <= i < {len(w)}, found {int(rows.min())} to {int(rows.max())}"
        )
    n = len(w)
    padding = None if padding_idx is None else row_number(padding_idx, n)

    def separable_vjp(g: Array, needs: Any) -> tuple[Array, None]:
        gradient = kernels.current().embedding_backward(g, rows, n)
        if padding is not None:
            gradient[padding] = 0
        return gradient, None

    return record(
        kernels.current().embedding(w, rows),
        (weight, indices),
        separable_vjp,
        saved=(1,),
    )


def row_number(padding_idx: int, n: int) -> int:
    """`padding_idx` counted from 0; TypeError unless it is a whole number, ValueError unless it is one of n rows."""
    if type(padding_idx) is not int:
        padding_idx = whole_number("embedding: padding_idx", padding_idx)
    if not -n <= padding_idx < n:
        raise ValueError(f"embedding: padding_idx must lie in {-n} <= padding_idx < {n}, got {padding_idx}")
    return padding_idx % n
