"""The embedding layer: a table of vectors, one for each symbol."""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl import functional as F
from minidl.nn import init
from minidl.nn.module import Module, Parameter
from minidl.tensor import Tensor


class Embedding(Module):
    """A table with a row for every symbol: the linear layer of one-hot inputs, by looking up.

    indices: integers of any shape -> (*indices.shape, embedding_dim); weight (num_embeddings, embedding_dim), which
    starts from the standard normal distribution. Errors: TypeError for other indices, IndexError for one out of range.

    >>> Embedding(96, 8)(np.array([[3, 1, 4]])).shape
    (1, 3, 8)
    """

    def __init__(self, num_embeddings: int, embedding_dim: int) -> None:
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.weight = Parameter(np.empty((num_embeddings, embedding_dim), np.float32))
        init.normal_(self.weight)

    def forward(self, indices: Any) -> Tensor:
        return F.embedding(indices, self.weight)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"
