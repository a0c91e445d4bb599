"""Dropout: in training, each number is set to zero at random and the others are scaled up."""

from __future__ import annotations

from typing import Any

from numpy.random import Generator

from minidl import random
from minidl.functional.bind import operand
from minidl.kernels import Array, array_module
from minidl.tensor import Tensor, record


def dropout(a: Any, p: float = 0.5, training: bool = True, generator: Generator | None = None) -> Tensor:
    """Zero with probability p, else x / (1 - p), so that the mean stays; x itself when not training.

    generator: where the random numbers come from; `minidl.random.generator()` by default.
    Errors: ValueError unless 0 <= p <= 1.
    Source: Srivastava et al., Dropout (JMLR 15, 2014).

    >>> from minidl import manual_seed
    >>> _ = manual_seed(1)
    >>> dropout([1.0, 2.0, 3.0, 4.0], p=0.5)
    Tensor([0., 4., 6., 0.], float32)
    """
    x = operand(a)
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: the probability must lie in 0 <= p <= 1, got {p}")
    if not training or p == 0:
        return x
    data = x.data
    mask = dropout_mask(data, p, generator)
    return record(data * mask, (x,), lambda g, needs: (g * mask,))


def dropout_mask(data: Array, p: float, generator: Generator | None = None) -> Array:
    """The factors of dropout, of the shape and type of `data`: 0 with probability p, else 1 / (1 - p)."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: the probability must lie in 0 <= p <= 1, got {p}")
    kept = (generator or random.generator()).random(data.shape, dtype="float32") >= p
    return array_module(data).asarray(kept) * data.dtype.type(1 / (1 - p) if p < 1 else 0)
