"""Attention in blocks of queries and keys: memory grows with the length of the sequence, not with its square.

A softmax over the keys does not need all scores of a query at the same time. The blocks of keys are processed one after
another. Each block updates the largest score and the sum of exponentials:

    for each block of queries Q_i:
        m, l, O = -inf, 0, 0
        for each block of keys and values K_j, V_j:
            S = Q_i K_j^T / sqrt(d)
            m' = max(m, largest score of each row of S)
            P = exp(S - m')
            l = exp(m - m') l + sum of each row of P
            O = exp(m - m') O + P V_j
            m = m'
        output O / l, and L = m + log(l)

Backward recomputes the probabilities of a block as exp(S - L), so that L alone is kept of the scores:

    D = sum of each row of gradient times output
    for each block of keys and values, for each block of queries:
        P = exp(S - L);   dV_j += P^T dO_i;   dS = P (dO_i V_j^T - D_i)
        dQ_i += dS K_j / sqrt(d);   dK_j += dS^T Q_i / sqrt(d)

Sources: Rabe and Staats, Self-attention Does Not Need O(n^2) Memory (arXiv:2112.05682), section 2; Dao et al.,
FlashAttention (arXiv:2205.14135), algorithms 1 and 4; Dao, FlashAttention-2 (arXiv:2307.08691), algorithms 1 and 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from minidl import kernels
from minidl.kernels import Array
from minidl.kernels.sixteen_bit import cast, is_sixteen_bit

# In a block. Scores of 256 KiB in float32 stay in a second-level cache of 512 KiB. Measured on one core of a Zen 3 with
# PyTorch's time as 1, forward and backward, 4 heads of 64 features, 2,048 tokens: 1.15; blocks of 512 x 512 1.20,
# and at 1,024 tokens 256 x 256 1.19, 128 x 256 1.37; causal 1.03, and 1.16 with 256 x 512.
QUERIES, KEYS = 256, 256
FLOAT32 = np.dtype(np.float32)


class Blocks:
    """Attention of queries q (..., t, d) to keys k (..., s, d) with values v (..., s, e), forward and backward.

    Parameters
        scale      factor of the scores
        mask       numbers to add to the scores, of a shape that broadcasts to (..., t, s); None: none
        is_causal  hide the keys after i from query i; blocks that are hidden entirely are skipped

    16-bit numbers are widened to float32, and results are rounded once.
    """

    def __init__(self, q: Array, k: Array, v: Array, scale: float, mask: Array | None, is_causal: bool) -> None:
        self.q, self.k, self.v, self.scale, self.is_causal = q, k, v, scale, is_causal
        shape = (*q.shape[:-1], k.shape[-2])
        self.mask = None if mask is None else kernels.array_module(mask).broadcast_to(mask, shape)

    def forward(self) -> tuple[Array, Array]:
        """Return the output (..., t, e), and the logarithms L of the sums of exponentials (..., t, 1)."""
        module = kernels.array_module(self.q)
        # in q's order of axes: joining the heads, a transposition, then need not copy
        out = module.empty_like(self.q, shape=(*self.q.shape[:-1], self.v.shape[-1]))
        logarithms = module.empty((*self.q.shape[:-1], 1), dtype=FLOAT32 if is_sixteen_bit(out.dtype) else out.dtype)
        for head in self._heads():
            self._forward(head, out[head], logarithms[head])
        return out, logarithms

    def _forward(self, head: tuple[int, ...], out: Array, logarithms: Array) -> None:
        kernel, module = kernels.current(), kernels.array_module(out)
        q, k, v = _prepared(self.q[head]), _prepared(self.k[head]), _prepared(self.v[head])
        for rows in _blocks(q.shape[-2], QUERIES):
            queries = q[..., rows, :] * q.dtype.type(self.scale)
            largest = module.full_like(queries[..., :1], -module.inf)
            total, weighted = module.zeros_like(largest), module.zeros_like(v, shape=(*queries.shape[:-1], v.shape[-1]))
            for columns in _blocks(k.shape[-2], KEYS):
                if self._hidden(rows, columns):
                    break
                scores = self._scores(head, queries, k, rows, columns)
                weights, largest, total, shrinkage = kernel.attention_block(
                    scores, largest, total, self._visible(rows, columns)
                )
                weighted *= shrinkage
                weighted += kernel.matmul(weights, v[..., columns, :])
            seen = total != 0
            total = module.where(seen, total, total.dtype.type(1))  # zeros for a query that sees no key
            out[..., rows, :] = cast(weighted / total, out.dtype)
            # ... and infinity, with which backward makes its probabilities exp(S - L) zero
            logarithms[..., rows, :] = module.where(seen, largest + module.log(total), module.inf)

    def backward(self, g: Array, out: Array, logarithms: Array) -> tuple[Array, Array, Array]:
        """Return the gradients with respect to q, k and v."""
        module = kernels.array_module(self.q)
        of_q, of_k, of_v = (module.empty_like(operand) for operand in (self.q, self.k, self.v))
        for head in self._heads():
            gradient = _prepared(g[head])
            means = (gradient * _prepared(out[head])).sum(axis=-1, keepdims=True)
            self._backward(head, gradient, means, logarithms[head], of_q[head], of_k[head], of_v[head])
        return of_q, of_k, of_v

    def _backward(
        self, head: tuple[int, ...], g: Array, means: Array, logarithms: Array, of_q: Array, of_k: Array, of_v: Array
    ) -> None:
        kernel, module = kernels.current(), kernels.array_module(g)
        q, k, v = _prepared(self.q[head]), _prepared(self.k[head]), _prepared(self.v[head])
        sum_of_q = of_q if of_q.dtype == q.dtype else module.empty_like(q)
        sum_of_q[...] = 0
        for columns in _blocks(k.shape[-2], KEYS):
            keys, values = k[..., columns, :], v[..., columns, :]
            sum_of_k, sum_of_v = module.zeros_like(keys), module.zeros_like(values)
            for rows in _blocks(q.shape[-2], QUERIES):
                if self._hidden(rows, columns):
                    continue
                queries, gradient = q[..., rows, :] * q.dtype.type(self.scale), g[..., rows, :]
                weights, of_scores = kernel.attention_block_backward(
                    self._scores(head, queries, k, rows, columns),
                    kernel.matmul(gradient, values.swapaxes(-1, -2)),
                    logarithms[..., rows, :],
                    means[..., rows, :],
                    self._visible(rows, columns),
                )
                sum_of_v += kernel.matmul(weights.swapaxes(-1, -2), gradient)
                sum_of_k += kernel.matmul(of_scores.swapaxes(-1, -2), queries)
                sum_of_q[..., rows, :] += kernel.matmul(of_scores, keys)
            of_k[..., columns, :] = cast(sum_of_k, of_k.dtype)
            of_v[..., columns, :] = cast(sum_of_v, of_v.dtype)
        sum_of_q *= self.scale
        if sum_of_q is not of_q:
            of_q[...] = cast(sum_of_q, of_q.dtype)

    def _heads(self) -> Iterable[tuple[int, ...]]:
        """The indices of the matrices: one at a time, so that a block stays in the cache; on a GPU all at once."""
        return np.ndindex(self.q.shape[:-2]) if type(self.q) is np.ndarray else [()]

    def _scores(self, head: tuple[int, ...], queries: Array, k: Array, rows: slice, columns: slice) -> Array:
        scores = kernels.current().matmul(queries, k[..., columns, :].swapaxes(-1, -2))
        if self.mask is not None:
            scores += self.mask[head][..., rows, columns].astype(scores.dtype, copy=False)
        return scores

    def _hidden(self, rows: slice, columns: slice) -> bool:
        """Whether causality hides all of these keys from all of these queries."""
        return self.is_causal and columns.start >= rows.stop

    def _visible(self, rows: slice, columns: slice) -> int:
        """How many keys of the block the first query sees; every later query sees one more."""
        return rows.start - columns.start + 1 if self.is_causal else columns.stop


def _blocks(length: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, length)) for start in range(0, length, size))


def _prepared(matrix: Array) -> Array:
    """The matrix of one head, for many products: contiguous, and widened if its numbers have 16 bits."""
    matrix = kernels.array_module(matrix).ascontiguousarray(matrix)
    return cast(matrix, FLOAT32) if is_sixteen_bit(matrix.dtype) else matrix
