"""Tensors of a given shape: zeros, ones, random numbers; float32 unless another type is given.

>>> from minidl import zeros, arange
>>> zeros(2, 3, requires_grad=True).shape, arange(3)
((2, 3), Tensor([0, 1, 2], int64))

Random ones draw from `minidl.random.generator()`, which `manual_seed` starts anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minidl import kernels, random
from minidl.tensor import Tensor


def zeros(*shape: Any, dtype: Any = np.float32, requires_grad: bool = False) -> Tensor:
    """Zeros: `zeros(2, 3)` or `zeros((2, 3))`."""
    return Tensor(kernels.new_array_module().zeros(_shape(shape), dtype), requires_grad)


def ones(*shape: Any, dtype: Any = np.float32, requires_grad: bool = False) -> Tensor:
    """Ones: `ones(2, 3)` or `ones((2, 3))`."""
    return Tensor(kernels.new_array_module().ones(_shape(shape), dtype), requires_grad)


def full(shape: Any, value: float, dtype: Any = np.float32, requires_grad: bool = False) -> Tensor:
    """One number everywhere: `full((2, 3), 0.5)`."""
    return Tensor(kernels.new_array_module().full(shape, value, dtype), requires_grad)


def arange(start: float, end: float | None = None, step: float = 1, dtype: Any = None) -> Tensor:
    """start, start + step, ..., below end: integers from integers, otherwise float32. `arange(n)` counts from 0."""
    first, last = (0, start) if end is None else (start, end)
    if dtype is None:
        dtype = np.int64 if all(isinstance(each, (int, np.integer)) for each in (first, last, step)) else np.float32
    return Tensor(kernels.new_array_module().arange(first, last, step, dtype))


def eye(n: int, dtype: Any = np.float32) -> Tensor:
    """The identity matrix of n rows."""
    return Tensor(kernels.new_array_module().eye(n, dtype=dtype))


def randn(*shape: Any, dtype: Any = np.float32, requires_grad: bool = False) -> Tensor:
    """Random numbers with mean 0 and standard deviation 1."""
    return Tensor(_drawn(random.generator().standard_normal(_shape(shape)), dtype), requires_grad)


def rand(*shape: Any, dtype: Any = np.float32, requires_grad: bool = False) -> Tensor:
    """Random numbers, equally likely anywhere in 0 <= x < 1."""
    return Tensor(_drawn(random.generator().random(_shape(shape), np.float32), dtype), requires_grad)


def randint(low: int, high: int, shape: Any, dtype: Any = np.int64) -> Tensor:
    """Random integers low <= i < high."""
    return Tensor(_drawn(random.generator().integers(low, high, shape), dtype))


def zeros_like(a: Any) -> Tensor:
    """Zeros, of the shape and type of a."""
    return zeros(a.shape, dtype=a.dtype)


def ones_like(a: Any) -> Tensor:
    """Ones, of the shape and type of a."""
    return ones(a.shape, dtype=a.dtype)


def randn_like(a: Any) -> Tensor:
    """Random numbers with mean 0 and standard deviation 1, of the shape and type of a."""
    return randn(a.shape, dtype=a.dtype)


def _shape(shape: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape


def _drawn(numbers: np.ndarray, dtype: Any) -> Any:
    return kernels.new_array_module().asarray(np.asarray(numbers).astype(dtype))
