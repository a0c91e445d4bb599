"""Tensors of a given shape: zeros, ones, random numbers; float32 unless another type is given.

>>> from minidl import zeros, arange
>>> zeros(2, 3, requires_grad=True).shape, arange(3)
((2, 3), Tensor([0, 1, 2], int64))

Random numbers are drawn from `minidl.random.generator()`, which `manual_seed` restarts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import finfo

from minidl import kernels, random
from minidl.arguments import real_number, whole_number
from minidl.from_pytorch import explains_options
from minidl.kernels.sixteen_bit import is_sixteen_bit
from minidl.tensor import Tensor


@explains_options
def zeros(*shape: Any, dtype: Any = np.float32, requires_grad: bool = False) -> Tensor:
    """Zeros: `zeros(2, 3)` or `zeros((2, 3))`."""
    return Tensor(kernels.new_array_module().zeros(_shape("zeros", shape), dtype), requires_grad)


@explains_options
def ones(*shape: Any, dtype: Any = np.float32, requires_grad: bool = False) -> Tensor:
    """Ones: `ones(2, 3)` or `ones((2, 3))`."""
    return Tensor(kernels.new_array_module().ones(_shape("ones", shape), dtype), requires_grad)


@explains_options
def full(shape: Any, value: float, dtype: Any = np.float32, requires_grad: bool = False) -> Tensor:
    """A tensor filled with one number: `full((2, 3), 0.5)`."""
    return Tensor(kernels.new_array_module().full(_shape("full", (shape,)), value, dtype), requires_grad)


@explains_options
def arange(start: float, end: float | None = None, step: float = 1, dtype: Any = None) -> Tensor:
    """start, start + step, ... below end; int64 for integers, otherwise float32. `arange(n)` counts from 0."""
    first, last = (0, _number("end", start)) if end is None else (_number("start", start), _number("end", end))
    step = _number("step", step)
    if step == 0:
        raise ValueError("arange: step must not be 0, a distance at which end is never reached")
    if dtype is None:
        dtype = np.int64 if all(isinstance(each, (int, np.integer)) for each in (first, last, step)) else np.float32
    return Tensor(kernels.new_array_module().arange(first, last, step, dtype))


@explains_options
def eye(n: int, m: int | None = None, *, dtype: Any = np.float32) -> Tensor:
    """Ones on the diagonal of a matrix of n rows and m columns, n by default; zeros elsewhere."""
    rows = whole_number("eye: n", n, at_least=0)
    columns = rows if m is None else whole_number("eye: m", m, at_least=0)
    return Tensor(kernels.new_array_module().eye(rows, columns, dtype=dtype))


@explains_options
def randn(*shape: Any, dtype: Any = np.float32, requires_grad: bool = False) -> Tensor:
    """Normally distributed random numbers, with mean 0 and standard deviation 1."""
    return Tensor(_drawn(random.generator().standard_normal(_shape("randn", shape)), dtype), requires_grad)


@explains_options
def rand(*shape: Any, dtype: Any = np.float32, requires_grad: bool = False) -> Tensor:
    """Uniformly distributed random numbers, 0 <= x < 1."""
    numbers = random.generator().random(_shape("rand", shape), np.float32)
    if is_sixteen_bit(np.dtype(dtype)):  # rounded down, as PyTorch does: the nearest number may be 1
        steps = 2.0 ** (finfo(np.dtype(dtype)).nmant + 1)  # type: ignore[no-untyped-call]
        numbers = np.floor(numbers * steps) / steps
    return Tensor(_drawn(numbers, dtype), requires_grad)


@explains_options
def randint(low: int, high: Any, shape: Any = None, dtype: Any = np.int64) -> Tensor:
    """Random integers low <= i < high: `randint(0, 10, (2, 3))`, or `randint(10, (2, 3))` for low = 0."""
    if shape is None and isinstance(high, (tuple, list)):
        low, high, shape = 0, low, high
    if shape is None:
        raise TypeError("randint: the shape is missing: type randint(0, 10, (2, 3)), or randint(0, 10, (1,)) for one")
    return Tensor(_drawn(random.generator().integers(low, high, _shape("randint", (shape,))), dtype))


def zeros_like(a: Any) -> Tensor:
    """Zeros, of the shape and type of a."""
    return zeros(a.shape, dtype=a.dtype)


def ones_like(a: Any) -> Tensor:
    """Ones, of the shape and type of a."""
    return ones(a.shape, dtype=a.dtype)


def randn_like(a: Any) -> Tensor:
    """Normally distributed random numbers, of the shape and type of a."""
    return randn(a.shape, dtype=a.dtype)


def _shape(name: str, shape: tuple[Any, ...]) -> tuple[int, ...]:
    """The lengths of a call, given as `f(2, 3)` or as `f((2, 3))`."""
    lengths = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    for length in lengths:
        if type(length) is not int or length < 0:
            return tuple([whole_number(f"{name}: each length", one, at_least=0) for one in lengths])
    return lengths


def _number(name: str, value: Any) -> Any:
    """A bound or step of `arange`, also of a tensor of one number."""
    if type(value) is int:
        return value
    value = value.item() if getattr(value, "size", 0) == 1 else value
    real_number(f"arange: {name}", value)
    return value


def _drawn(numbers: np.ndarray, dtype: Any) -> Any:
    return kernels.new_array_module().asarray(np.asarray(numbers).astype(dtype))
