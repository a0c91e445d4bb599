"""Multi-head attention: several small attentions in parallel, each on its own projection of the input."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from minidl import functional as F
from minidl import random
from minidl.arguments import real_number, whole_number
from minidl.functional.attention import additive_mask, keeps_matrix, sees_a_key
from minidl.nn import init
from minidl.nn.linear import Linear
from minidl.nn.module import Module
from minidl.nn.parameter import Parameter
from minidl.nn.placeholder import empty
from minidl.recomputation import checkpoint
from minidl.tensor import Tensor


class MultiheadAttention(Module):
    """Multi-head attention: Concat(head_1, ..., head_h) W_o, head_i = attention(query W_i^Q, key W_i^K, value W_i^V).

    Parameters
        embed_dim    features of query, key, value and output, a multiple of num_heads
        num_heads    number of attentions, each on embed_dim / num_heads features
        dropout      probability that an attention weight is set to zero in training; the others are scaled up
        bias         whether the projections add a bias
        batch_first  True: inputs are (n, t, embed_dim); False, the default as in PyTorch: (t, n, embed_dim)

    The weights have PyTorch's names and shapes: in_proj_weight (3 embed_dim, embed_dim) holds W^Q, W^K, W^V,
    in_proj_bias (3 embed_dim,) their biases, out_proj is W_o.

    References
        Vaswani et al., Attention Is All You Need (arXiv:1706.03762), section 3.2.2.

    >>> attention = MultiheadAttention(embed_dim=8, num_heads=2, batch_first=True)
    >>> x, memory = Tensor(np.ones((1, 3, 8), np.float32)), Tensor(np.ones((1, 5, 8), np.float32))
    >>> out, weights = attention(x, memory, memory)
    >>> out.shape, weights.shape
    ((1, 3, 8), (1, 3, 5))
    """

    recomputes_selectively = False

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, *, batch_first: bool = False
    ) -> None:
        embed_dim = whole_number("MultiheadAttention: embed_dim", embed_dim, at_least=0)
        num_heads = whole_number("MultiheadAttention: num_heads", num_heads, at_least=1)
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim must be a multiple of num_heads, got {embed_dim} and {num_heads}")
        real_number("MultiheadAttention: dropout", dropout, at_least=0, at_most=1)
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.in_proj_weight = Parameter(empty(3 * embed_dim, embed_dim))
        self.in_proj_bias = Parameter(np.zeros(3 * embed_dim, np.float32)) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        init.xavier_uniform_(self.in_proj_weight)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Let every query attend to all keys.

        Self-attention passes one tensor three times; cross-attention passes one tensor as query, another as key and
        value.

        Parameters
            query                 (n, t, embed_dim); without batch_first (t, n, embed_dim)
            key, value            (n, s, embed_dim); without batch_first (s, n, embed_dim)
            key_padding_mask      (n, s), True hides a key from its sample's queries; or numbers added to the scores
            need_weights          return the weights; False is faster
            attn_mask             (t, s) or (n num_heads, t, s), True hides a key from a query (the opposite of
                                  `F.scaled_dot_product_attention`, as in PyTorch); or numbers added to the scores
            average_attn_weights  return the mean of the heads' weights; False: the weights of each head
            is_causal             hide the keys after i from query i; unlike PyTorch's, it needs no attn_mask

        Returns
            output     in the shape of the query
            weights    (n, t, s), or (n, num_heads, t, s) for each head, or None; before dropout they sum to 1 over s

        A query whose keys are all hidden has the weights zero, and its output is zero before the output projection.
        """
        q, k, v = (self._heads(position, x) for position, x in enumerate((query, key, value)))
        mask = self._mask(q, k, key_padding_mask, attn_mask)
        dropout = self.dropout if self.training else 0.0

        def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> list[Tensor]:
            generator = random.layer_generator(self) if dropout else None
            if not need_weights:
                return [F.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal, generator=generator)]
            probabilities = attention_weights(q, k, mask, is_causal)
            if dropout:
                probabilities = F.dropout(probabilities, dropout, generator=generator)
            return [probabilities @ v, probabilities.mean(axis=1) if average_attn_weights else probabilities]

        recompute = self.recomputes_selectively and (need_weights or keeps_matrix(q, k, mask, dropout))
        out, *weights = checkpoint(attend, q, k, v, mask) if recompute else attend(q, k, v, mask)
        n, _, t, _ = out.shape
        joined = (out.transpose(0, 2, 1, 3) if self.batch_first else out.transpose(2, 0, 1, 3)).reshape(
            (n, t, self.embed_dim) if self.batch_first else (t, n, self.embed_dim)
        )
        return self.out_proj(joined), weights[0] if need_weights else None

    def _mask(self, q: Tensor, k: Tensor, key_padding_mask: Any, attn_mask: Any) -> Tensor | None:
        """Return the sum of both masks, to be added to the scores (n, num_heads, t, s); None without masks."""
        (n, heads, t, _), s = q.shape, k.shape[2]
        total = None
        for name, mask, shapes in (
            ("key_padding_mask", key_padding_mask, {(n, s): (n, 1, 1, s)}),
            ("attn_mask", attn_mask, {(t, s): (1, 1, t, s), (n * heads, t, s): (n, heads, t, s)}),
        ):
            if mask is None:
                continue
            shape = tuple(np.shape(mask))
            if shape not in shapes:
                raise ValueError(
                    f"MultiheadAttention: {name} {' or '.join(str(shape) for shape in shapes)} expected, got {shape}"
                )
            added = additive_mask(mask, shapes[shape], q.dtype, seen=False)
            total = added if total is None else total + added
        return total

    def _heads(self, position: int, x: Any) -> Tensor:
        """Project query (position 0), key (1) or value (2), and split it into heads (n, num_heads, t, features)."""
        x = x if isinstance(x, Tensor) else Tensor(x)
        if x.ndim != 3 or x.shape[2] != self.embed_dim:
            name = ("query", "key", "value")[position]
            axes = "n, t" if self.batch_first else "t, n"
            raise ValueError(f"MultiheadAttention: {name} ({axes}, {self.embed_dim}) expected, got {x.shape}")
        rows = slice(position * self.embed_dim, (position + 1) * self.embed_dim)
        bias = None if self.in_proj_bias is None else self.in_proj_bias[rows]
        projected = F.linear(x, self.in_proj_weight[rows], bias)
        heads = projected.reshape(*x.shape[:2], self.num_heads, self.embed_dim // self.num_heads)
        return heads.transpose(0, 2, 1, 3) if self.batch_first else heads.transpose(1, 2, 0, 3)


def attention_weights(q: Tensor, k: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
    """Return softmax(q k^T / sqrt(d) + mask), which the fused attention does not return; its zeros are here, too."""
    scores = (q @ k.transpose(2, 3)) * (1 / sqrt(q.shape[-1]))
    if is_causal:
        past = np.tril(np.ones(scores.shape[-2:], dtype=bool))
        scores = F.where(past, scores, -np.inf)
    if mask is None:
        return F.softmax(scores, axis=-1)
    sees = sees_a_key(mask.data, scores.shape[-2:], is_causal)
    return F.softmax(F.where(sees, scores + mask, 0.0), axis=-1) * sees
