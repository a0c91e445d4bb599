"""linear: a matrix product and a bias, as one node. embedding: the same for one-hot rows, as a look-up."""

from __future__ import annotations

from math import prod
from typing import Any, NoReturn

from minidl import kernels
from minidl.arguments import whole_number
from minidl.functional.bind import operand
from minidl.functional.one_type import autocast_dtype, in_one_type
from minidl.kernels import Array
from minidl.tensor import Tensor, record


def linear(x: Any, weight: Any, bias: Any = None) -> Tensor:
    """x @ weight.T + bias, as one node.

    x: (..., n_in); weight: (n_out, n_in); bias: (n_out,) or None. Returns (..., n_out).
    Errors: ValueError if the sizes do not fit.

    >>> linear([[1.0, 2.0]], weight=[[3.0, 4.0]], bias=[5.0])  # 1 * 3 + 2 * 4 + 5
    Tensor([[16.]], float32)

    Optimizations:
    * one node instead of three; the bias is added in place;
    * no gradient with respect to x is computed where none is needed (the first layer).
    """
    x, weight = operand(x), operand(weight)
    bias = None if bias is None else operand(bias)
    if x._data.dtype is not weight._data.dtype or autocast_dtype.get() is not None:
        x, weight, bias = in_one_type("linear", x, weight, bias)
    w, whole = weight._data, x._data
    if w.ndim != 2:
        raise ValueError(f"linear: weight has shape {weight.shape}, expected two axes, (n_out, n_in)")
    if whole.shape[-1:] != w.shape[1:]:
        _refuse(whole.shape, w.shape)
    if bias is not None and bias._data.shape != w.shape[:1]:
        raise ValueError(
            f"linear: bias has shape {bias.shape}, expected ({w.shape[0]},): one number for each of the weight's "
            f"{w.shape[0]} outputs"
        )
    shape, is_flat, has_bias = whole.shape, whole.ndim == 2, bias is not None
    rows = whole if is_flat else whole.reshape(prod(shape[:-1]), shape[-1])
    out = kernels.current().linear(rows, w, None if bias is None else bias._data)

    def separable_vjp(g: Array, needs: Any) -> tuple[Array, ...]:
        kernel = kernels.current()
        if not is_flat:
            g = g.reshape(len(rows), w.shape[0])
        of_x = needs[0] and kernel.matmul(g, w)
        if needs[0] and not is_flat:
            of_x = of_x.reshape(shape)
        of_weight = needs[1] and kernel.matmul(g.T, rows)
        return (of_x, of_weight, needs[2] and kernel.sum_rows(g)) if has_bias else (of_x, of_weight)

    if not is_flat:
        out = out.reshape(*shape[:-1], w.shape[0])
    return record(out, (x, weight) if bias is None else (x, weight, bias), separable_vjp, saved=(0, 1))


def _refuse(x: tuple[int, ...], weight: tuple[int, ...]) -> NoReturn:
    n_out, n_in = weight
    given = (
        f"linear: x has shape {x}, its last axis should have the weight's {n_in} inputs; the weight has shape "
        f"{weight}, (n_out, n_in)"
    )
    if x[-1:] == (n_out,):
        raise ValueError(f"{given}: pass weight.T if its axes are the other way round")
    if len(x) > 1 and prod(x[1:]) == n_in:
        raise ValueError(f"{given}: flatten every sample first, with x.reshape(len(x), -1) or the layer nn.Flatten()")
    if x[-2:-1] == (n_in,):
        raise ValueError(f"{given}: x.transpose(-2, -1) puts the axis of {n_in} last")
    raise ValueError(f"{given}: the layer for this x is nn.Linear({x[-1] if x else 1}, {n_out})")


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
    n = len(w)
    check_rows(rows, n)
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


def check_rows(rows: Array, count: int) -> None:
    """Raise TypeError, IndexError unless the indices of an embedding are whole numbers from 0 to count - 1."""
    if rows.dtype.kind not in "iu":
        raise TypeError(f"embedding: indices must be integers, not {rows.dtype}")
    if rows.size and (int(rows.min()) < 0 or int(rows.max()) >= count):
        raise IndexError(
            f"embedding: indices must lie in 0 <= i < {count}, found {int(rows.min())} to {int(rows.max())}"
        )


def row_number(padding_idx: int, n: int) -> int:
    """`padding_idx` counted from 0; TypeError unless it is a whole number, ValueError unless it is one of n rows."""
    if type(padding_idx) is not int:
        padding_idx = whole_number("embedding: padding_idx", padding_idx)
    if not -n <= padding_idx < n:
        raise ValueError(f"embedding: padding_idx must lie in {-n} <= padding_idx < {n}, got {padding_idx}")
    return padding_idx % n
