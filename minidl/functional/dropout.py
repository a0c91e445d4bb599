"""Dropout: in training, elements are set to zero at random, and the others are scaled up."""

from __future__ import annotations

from typing import Any

from numpy.random import Generator

from minidl import random
from minidl.arguments import real_number
from minidl.functional.bind import operand
from minidl.kernels import Array, array_module
from minidl.kernels.sixteen_bit import is_floating_point
from minidl.tensor import Tensor, record


def dropout(a: Any, p: float = 0.5, training: bool = True, generator: Generator | None = None) -> Tensor:
    """Set elements to 0 with probability p, divide the others by 1 - p to keep the mean; a itself when not training.

    p: probability of zero, 0 to 1
    generator: source of the random numbers; default: `minidl.random.generator()`

    Errors: ValueError unless 0 <= p <= 1; TypeError for integers.
    Source: Srivastava et al., Dropout (JMLR 15, 2014).

    >>> from minidl import manual_seed
    >>> _ = manual_seed(1)
    >>> dropout([1.0, 2.0, 3.0, 4.0], p=0.5)
    Tensor([0., 4., 6., 0.], float32)
    """
    x = operand(a)
    check_probability("dropout: p", p)
    if not training or p == 0:
        return x
    data = x.data
    if not is_floating_point(data.dtype):
        raise TypeError(f"dropout: floating-point numbers expected, got {data.dtype}: convert them with .float()")
    mask = dropout_mask(data, p, generator)
    return record(data * mask, (x,), lambda g, needs: (g * mask,))


def check_probability(name: str, p: float) -> None:
    """Raise TypeError or ValueError unless p is a number from 0 to 1."""
    if type(p) is not float or not 0 <= p <= 1:  # the fast path: nearly every call has a valid float
        real_number(name, p, at_least=0, at_most=1)


def dropout_mask(data: Array, p: float, generator: Generator | None = None) -> Array:
    """The factors of dropout, of the shape and type of `data`: 0 with probability p, else 1 / (1 - p)."""
    kept = (generator or random.generator()).random(data.shape, dtype="float32") >= p
    return array_module(data).asarray(kept) * data.dtype.type(1 / (1 - p) if p < 1 else 0)
