"""Scaled dot-product attention, as one node."""

from __future__ import annotations

from math import sqrt
from typing import Any

from minidl import kernels
from minidl.functional.one_type import in_one_type
from minidl.kernels import Array
from minidl.tensor import Tensor, record


def scaled_dot_product_attention(q: Any, k: Any, v: Any, is_causal: bool = False) -> Tensor:
    """softmax(q k^T / sqrt(d)) v: every query takes a mean of the values, weighted by its likeness to the keys.

    q: (..., t, d); k: (..., s, d); v: (..., s, e), with equal leading axes. Returns (..., t, e).
    is_causal: query i sees the keys 0..i only.
    Errors: ValueError if the shapes do not fit.
    Source: Vaswani et al., Attention Is All You Need (arXiv:1706.03762), equation 1.

    >>> keys, values = [[100.0, 0.0], [0.0, 100.0]], [[1.0], [2.0]]
    >>> scaled_dot_product_attention([[0.0, 1.0]], keys, values)  # a query that is like the second key
    Tensor([[2.]], float32)

    Optimizations:
    * one node; of the t x s matrices only the probabilities are kept;
    * scaling, masking and softmax are one pass over the scores, and so are their derivatives.
    """
    q, k, v = in_one_type("attention", q, k, v)
    if q.ndim < 2 or q.shape[:-2] != k.shape[:-2] or q.shape[-1] != k.shape[-1] or k.shape[:-1] != v.shape[:-1]:
        raise ValueError(
            f"attention: q (..., t, d), k (..., s, d), v (..., s, e) expected, got {q.shape}, {k.shape} and {v.shape}"
        )
    queries, keys, values = q.data, k.data, v.data
    kernel = kernels.current()
    scale = queries.dtype.type(1 / sqrt(q.shape[-1])) if q.shape[-1] else 1
    probabilities = kernel.attention_softmax(kernel.matmul(queries, keys.swapaxes(-1, -2)), scale, is_causal)
    out = kernel.matmul(probabilities, values)

    def vjp(g: Array, needs: Any) -> tuple[Array, Array, Array]:
        kernel = kernels.current()
        scores = kernel.attention_softmax_backward(kernel.matmul(g, values.swapaxes(-1, -2)), probabilities, scale)
        return (
            kernel.matmul(scores, keys),
            kernel.matmul(scores.swapaxes(-1, -2), queries),
            kernel.matmul(probabilities.swapaxes(-1, -2), g),
        )

    return record(out, (q, k, v), vjp, saved=(0, 1, 2))
