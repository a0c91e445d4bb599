"""The embedding layer: a table of vectors, one for each symbol."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl import functional as F
from minidl.functional.embedding import row_number
from minidl.nn import init
from minidl.nn.module import Module, Parameter
from minidl.tensor import Tensor


class Embedding(Module):
    """A table with a row for every symbol: the linear layer of one-hot inputs, by looking up.

    indices: integers of any shape -> (*indices.shape, embedding_dim); weight (num_embeddings, embedding_dim), which
    starts from the standard normal distribution. The row `padding_idx` starts as zeros and gets no gradient.
    Errors: TypeError for other indices, IndexError for one out of range.

    >>> Embedding(96, 8)(np.array([[3, 1, 4]])).shape
    (1, 3, 8)
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None) -> None:
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.weight = Parameter(np.empty((num_embeddings, embedding_dim), np.float32))
        init.normal_(self.weight)
        self.padding_idx = None if padding_idx is None else row_number(padding_idx, num_embeddings)
        if self.padding_idx is not None:
            self.weight.data[self.padding_idx] = 0

    def forward(self, indices: Any) -> Tensor:
        return F.embedding(indices, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
