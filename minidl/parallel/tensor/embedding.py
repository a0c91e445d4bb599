"""Embeddings sharded over ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl import functional as F
from minidl import kernels
from minidl.cluster.comm import Communicator
from minidl.functional.linear import check_rows
from minidl.nn import Embedding, Module, Shard
from minidl.parallel.tensor.collectives import summed, summed_sliced
from minidl.parallel.tensor.linear import check_kind, cut
from minidl.tensor import Tensor


class VocabularyEmbedding(Module):
    """An embedding sharded by rows: each rank looks up the symbols in its shard, 0 for others; the results are summed.

    Parameters
        layer      the whole embedding; its weight is cut in place and keeps its name
        comm       the ranks that share it
        sequence   True: every rank gets only its slice of the positions, axis 1

    Shapes: indices (n, t) -> (n, t, embedding_dim), with `sequence` (n, t / p, embedding_dim).
    Messages: an all-reduce in forward, with `sequence` a reduce-scatter; none in backward, with `sequence` an
    all-gather.

    References
        Shoeybi et al., Megatron-LM (arXiv:1909.08053), section 3.
    """

    def __init__(self, layer: Embedding, comm: Communicator, sequence: bool = False) -> None:
        check_kind("VocabularyEmbedding", layer, Embedding)
        self.comm, self.sequence = comm, sequence
        self.num_embeddings, self.embedding_dim = layer.num_embeddings, layer.embedding_dim  # of the whole table
        self.weight, self.padding_idx = layer.weight, layer.padding_idx
        cut(self.weight, Shard("tp", comm.rank, comm.size))

    def forward(self, indices: Any) -> Tensor:
        rows = kernels.new_array_module().asarray(indices.data if isinstance(indices, Tensor) else indices)
        check_rows(rows, self.num_embeddings)
        count = self.num_embeddings // self.comm.size
        local = rows.astype(np.int64) - self.comm.rank * count  # in uint8, a negative difference would be a row
        is_mine = (local >= 0) & (local < count)
        padding = None if self.padding_idx is None else self.padding_idx - self.comm.rank * count
        mine = padding if padding is not None and 0 <= padding < count else None
        found = F.embedding(local * is_mine, self.weight, mine)
        shares = found * is_mine[..., None].astype(found.dtype)
        return summed_sliced(shares, self.comm, 1) if self.sequence else summed(shares, self.comm)


class PositionEmbedding(Module):
    """An embedding evaluated at this rank's slice of the positions; indices (t,) -> (t / p, embedding_dim).

    Every rank holds the whole table. Its gradient covers only the slice; the strategy sums it over the ranks.
    """

    def __init__(self, layer: Embedding, comm: Communicator) -> None:
        self.comm, self.num_embeddings, self.embedding_dim = comm, layer.num_embeddings, layer.embedding_dim
        self.weight, self.padding_idx = layer.weight, layer.padding_idx

    def forward(self, indices: Any) -> Tensor:
        mine = np.array_split(np.asarray(indices), self.comm.size)[self.comm.rank]
        return F.embedding(mine, self.weight, self.padding_idx)
