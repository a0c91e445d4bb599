"""Dropout: in training, elements are set to zero at random, and the others are scaled up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.random import Generator

from minidl import random
from minidl.arguments import real_number
from minidl.functional.bind import operand
from minidl.kernels import Array, array_module
from minidl.kernels.shapes import Hollow, empty
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
    drop = dropping(kept_elements(data, data.shape, p, generator), p, data.dtype)
    return record(drop(data), (x,), lambda g, needs: (drop(g),))


def check_probability(name: str, p: float) -> None:
    """Raise TypeError or ValueError unless p is a number from 0 to 1."""
    if type(p) is not float or not 0 <= p <= 1:  # the fast path: nearly every call has a valid float
        real_number(name, p, at_least=0, at_most=1)


def kept_elements(like: Array, shape: tuple[int, ...], p: float, generator: Generator | None = None) -> Array:
    """Booleans in an array of the kind of `like` (numpy's, CuPy's): False with probability p, where dropout sets 0."""
    if isinstance(like, Hollow):
        return empty(shape, bool)
    return array_module(like).asarray((generator or random.generator()).random(shape, dtype="float32") >= p)


def dropping(kept: Array, p: float, dtype: Any) -> Callable[[Array], Array]:
    """The function that multiplies arrays of this type by dropout's factors: 1 / (1 - p) where `kept`, else 0.

    It holds the booleans, one byte an element.
    """
    factor = dtype.type(1 / (1 - p) if p < 1 else 0)
    return lambda values: values * (kept * factor)
