"""Scaled dot-product attention, as one node."""

from __future__ import annotations

from functools import partial
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator

from minidl import kernels
from minidl.arguments import real_number
from minidl.functional.attention_in_blocks import Blocks
from minidl.functional.bind import operand, unbroadcast
from minidl.functional.casts import astype
from minidl.functional.dropout import check_probability, dropping, kept_elements
from minidl.functional.one_type import autocast_dtype, in_one_type
from minidl.functional.shapes import reshape
from minidl.kernels import Array
from minidl.tape import OUTPUT
from minidl.tensor import Tensor, record

# Queries times keys from which attention is computed in blocks. Measured with 4 heads of 64 features, on one core of a
# Zen 3, forward and backward, in multiples of PyTorch's time, blocks against the whole matrix:
#     512 tokens     1.30 against 1.06, causal 0.87 against 0.94, in 3.9 MiB instead of 14.5
#     1,024          1.19 against 0.97, causal 1.03 against 1.15
#     2,048          1.15 against 1.63, causal 1.14 against 2.70
LONG = 1024 * 1024


def scaled_dot_product_attention(
    q: Any,
    k: Any,
    v: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """softmax(scale q k^T + mask) v: for every query, a mean of the values, weighted by its similarity to the keys.

    Parameters
        q, k, v     (..., t, d), (..., s, d) and (..., s, e), with equal leading axes
        attn_mask   booleans, True where a query sees a key (`nn.MultiheadAttention` means the opposite, as in PyTorch),
                    or numbers added to the scores; of a shape that broadcasts to (..., t, s)
        dropout_p   probability, 0 to 1, that a weight of the mean is set to zero, in evaluation too; the others are
                    divided by 1 - dropout_p
        is_causal   hide the keys after i from query i, in addition to those that attn_mask hides
        scale       factor of the scores, not 0; default 1 / sqrt(d)
        generator   source of dropout's random numbers; default: `minidl.random.generator()`

    Returns (..., t, e); zeros for a query that sees no key. A single True or False as fourth argument is is_causal.

    Errors: ValueError if the shapes do not fit, TypeError for operands of different types.
    Source: Vaswani et al., Attention Is All You Need (arXiv:1706.03762), equation 1.

    >>> keys, values = [[100.0, 0.0], [0.0, 100.0]], [[1.0], [2.0]]
    >>> scaled_dot_product_attention([[0.0, 1.0]], keys, values)  # a query that is similar to the second key
    Tensor([[2.]], float32)
    >>> scaled_dot_product_attention([[0.0, 1.0]], keys, values, attn_mask=np.array([[True, False]]))
    Tensor([[1.]], float32)

    Optimizations:
    * one node, which keeps two t x s matrices at most: the probabilities and the mask of dropout;
    * without a mask, scaling and softmax are one pass over the scores, and so are their derivatives;
    * long sequences keep no t x s matrix: `attention_in_blocks.py`.
    """
    if isinstance(attn_mask, bool):
        attn_mask, is_causal = None, attn_mask
    q, k, v = operand(q), operand(k), operand(v)
    if not q._data.dtype is k._data.dtype is v._data.dtype or autocast_dtype.get() is not None:
        q, k, v = in_one_type("attention", q, k, v)
    if q.ndim < 2 or q.shape[:-2] != k.shape[:-2] or q.shape[-1] != k.shape[-1] or k.shape[:-1] != v.shape[:-1]:
        raise ValueError(
            f"attention: q (..., t, d), k (..., s, d), v (..., s, e) expected, got {q.shape}, {k.shape} and {v.shape}"
        )
    queries, keys, values = q.data, k.data, v.data
    shape = (*q.shape[:-1], k.shape[-2])  # of the scores
    if scale is None:
        scale = float(1 / sqrt(q.shape[-1])) if q.shape[-1] else 1.0
    elif real_number("attention: scale", scale) == 0:
        raise ValueError("attention: with scale 0 every query would see the mean of all values: give another scale")
    mask = None if attn_mask is None else additive_mask(attn_mask, np.shape(attn_mask), queries.dtype)
    if mask is not None and not _broadcasts(mask.shape, shape):
        raise ValueError(f"attention: a mask {mask.shape} does not broadcast to the scores' {shape}")
    if dropout_p:
        check_probability("attention: dropout_p", dropout_p)
    if not keeps_matrix(q, k, mask, dropout_p):
        return _in_blocks(q, k, v, mask, scale, is_causal)
    kernel = kernels.current()
    scores = kernel.matmul(queries, keys.swapaxes(-1, -2))
    if mask is None:
        probabilities = kernel.attention_softmax(scores, scale, is_causal)
    else:
        scores *= scale
        scores += mask.data
        sees = sees_a_key(mask.data, scores.shape[-2:], is_causal)
        if sees.all():
            probabilities = kernel.attention_softmax(scores, 1.0, is_causal)
        else:  # as PyTorch: zeros for a query that sees no key, rather than 0 / 0
            scores = kernels.array_module(scores).where(sees, scores, scores.dtype.type(0))
            probabilities = kernel.attention_softmax(scores, 1.0, is_causal) * sees
    drop = None
    if dropout_p:
        kept = kept_elements(probabilities, probabilities.shape, dropout_p, generator)
        drop = dropping(kept, dropout_p, probabilities.dtype)
    like_mask = None if mask is None else (mask.shape, mask.dtype)
    # in q's order of axes: joining the heads, a transposition, then need not copy
    out = kernel.matmul(probabilities if drop is None else drop(probabilities), values, queries)

    def vjp(g: Array, needs: Any) -> tuple[Any, ...]:
        kernel = kernels.current()
        weights = probabilities if drop is None else drop(probabilities)
        of_weights = kernel.matmul(g, values.swapaxes(-1, -2))
        if drop is not None:
            of_weights = drop(of_weights)
        scores = kernel.attention_softmax_backward(of_weights, probabilities, scale)
        gradients = (
            kernel.matmul(scores, keys),
            kernel.matmul(scores.swapaxes(-1, -2), queries),
            kernel.matmul(weights.swapaxes(-1, -2), g),
        )
        if like_mask is None:
            return gradients
        return (*gradients, needs[3] and unbroadcast(scores / scale, *like_mask))

    return record(out, (q, k, v) if mask is None else (q, k, v, mask), vjp, saved=(0, 1, 2))


def keeps_matrix(q: Tensor, k: Tensor, mask: Tensor | None = None, dropout_p: float = 0.0) -> bool:
    """Whether `scaled_dot_product_attention` keeps t x s matrices for backward; of long sequences it keeps none."""
    is_long = q.shape[-2] * k.shape[-2] >= LONG
    return bool(dropout_p) or not is_long or (mask is not None and mask.requires_grad)


def _in_blocks(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float, is_causal: bool) -> Tensor:
    blocks = partial(Blocks, q.data, k.data, v.data, scale, None if mask is None else mask.data, is_causal)
    out, logarithms = blocks().forward()
    parents = (q, k, v) if mask is None else (q, k, v, mask)

    def vjp(g: Array, needs: Any) -> tuple[Any, ...]:
        gradients = blocks().backward(g, out, logarithms)
        return gradients if mask is None else (*gradients, None)

    return record(out, parents, vjp, saved=(*range(len(parents)), OUTPUT))


def additive_mask(mask: Any, shape: tuple[int, ...], dtype: Any, seen: bool = True) -> Tensor:
    """The mask as numbers to add to the scores: booleans become 0 where they equal `seen`, minus infinity elsewhere.

    shape: the shape of the result. Errors: TypeError for a mask of integers.
    """
    tensor = operand(mask)
    kind = tensor.dtype.kind
    if kind not in "bfV":
        raise TypeError(f"attention: a mask has booleans, or numbers that are added to the scores, not {tensor.dtype}")
    if kind == "b":
        module = kernels.array_module(tensor.data)
        tensor = Tensor(module.where(tensor.data == seen, 0, -module.inf).astype(dtype))
    elif tensor.dtype == np.float64:  # numpy's own type, as of np.triu(np.full((t, t), -np.inf), 1)
        tensor = astype(tensor, dtype)
    return tensor if tensor.shape == shape else reshape(tensor, shape)


def sees_a_key(mask: Array, shape: tuple[int, ...], is_causal: bool) -> Array:
    """Whether each query sees at least one key, (..., t, 1)."""
    module = kernels.array_module(mask)
    seen = mask != -module.inf
    if is_causal:
        seen = seen & module.tril(module.ones(shape, dtype=bool))
    return seen.any(axis=-1, keepdims=True)


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return len(shape) <= len(to) and all(n in (1, m) for n, m in zip(shape[::-1], to[::-1], strict=False))
