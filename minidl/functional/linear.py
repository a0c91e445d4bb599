"""The linear layer, as one node: a matrix product and a bias."""

from __future__ import annotations

from math import prod
from typing import Any, NoReturn

from minidl import kernels
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
