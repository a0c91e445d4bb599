"""Embedding: a table of vectors, one per symbol."""

from __future__ import annotations

from typing import Any

from minidl import functional as F
from minidl.arguments import whole_number
from minidl.functional.linear import row_number
from minidl.nn import init
from minidl.nn.module import Module
from minidl.nn.parameter import Parameter
from minidl.nn.placeholder import empty
from minidl.tensor import Tensor


class Embedding(Module):
    """Look up one row of a table per symbol, as a linear layer does with one-hot inputs.

    Parameters
        num_embeddings    number of symbols, rows of the table
        embedding_dim     numbers per row
        padding_idx       symbol whose row starts as zeros and gets no gradient

    Shapes: indices (integers of any shape) -> (*indices.shape, embedding_dim); weight (num_embeddings, embedding_dim),
    initialised from the standard normal distribution.

    Raises
        TypeError     indices that are not integers
        IndexError    an index out of range

    >>> import numpy as np
    >>> Embedding(96, 8)(np.array([[3, 1, 4]])).shape
    (1, 3, 8)
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None) -> None:
        self.num_embeddings = whole_number("Embedding: num_embeddings", num_embeddings, at_least=0)
        self.embedding_dim = whole_number("Embedding: embedding_dim", embedding_dim, at_least=0)
        self.weight = Parameter(empty(self.num_embeddings, self.embedding_dim))
        init.normal_(self.weight)
        self.padding_idx = None if padding_idx is None else row_number(padding_idx, num_embeddings)
        if self.padding_idx is not None:
            self.weight.data[self.padding_idx] = 0

    def forward(self, indices: Any) -> Tensor:
        return F.embedding(indices, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"
