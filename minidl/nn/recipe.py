"""Recipe: the steps that make the values of a parameter of `nn.building`, kept until it is known who holds it.

The first step gives an array: the one that the parameter was made from, or new memory for an init call to fill. The
others are that call, the writes after it, and conversions to another type.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from minidl import kernels
from minidl.kernels import Array
from minidl.tensor import Tensor, as_array

Recipe = tuple[Callable[[Any], Array], ...]  # each step gets the array of the step before it, the first one None


def content(array: Array) -> Callable[[Any], Array]:
    """Return the first step for a given array: the array itself, or, if all its elements are equal, one of them.

    An array of equal elements is released. If the program keeps it, it is read-only while the recipe needs it: a write
    into it could be lost, and raises ValueError.
    """
    if array.size > 1 and not any(array.strides):  # of `empty`
        return _Uniform(array)
    if not isinstance(array, np.ndarray):  # on the GPU
        return _Content(array)
    if array.base is not None or not array.flags.writeable or not _all_equal(array):
        return _Content(array)
    array.flags.writeable = False
    return _Uniform(array, weakref.ref(array))


class _Content:
    """The given array itself."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __call__(self, before: None) -> Array:
        return self.array


class _Uniform:
    """A given array of equal elements: itself, if somebody keeps it, else a new one."""

    def __init__(self, array: Array, given: weakref.ref[np.ndarray] | None = None) -> None:
        self._shape, self._number = array.shape, array[(0,) * array.ndim].copy()
        self._given = given

    def __call__(self, before: None) -> Array:
        if (kept := self._kept()) is not None:
            return kept
        return kernels.array_module(self._number).full(self._shape, self._number, self._number.dtype)

    def __deepcopy__(self, memo: Any) -> _Uniform:
        twin = copy.copy(self)
        twin._given = None
        return twin

    def __del__(self) -> None:
        if (kept := self._kept()) is not None:
            kept.flags.writeable = True

    def _kept(self) -> np.ndarray | None:
        return None if self._given is None else self._given()


def _all_equal(array: np.ndarray) -> bool:
    """Return whether all elements have the same bits; block by block, since the comparison needs memory."""
    if not array.size or not array.flags.c_contiguous or array.itemsize not in (1, 2, 4, 8):
        return False
    bits = array.reshape(-1).view(f"u{array.itemsize}")
    return all((bits[start : start + 4096] == bits[0]).all() for start in range(0, len(bits), 4096))


def operand_now(value: Any) -> Any:
    """Return the numbers of an operand as they are now."""
    return copy.copy(as_array(value) if isinstance(value, (Tensor, np.ndarray)) else value)


# The steps, as functions whose last argument is the array of the step before


def allocated(shape: tuple[int, ...], dtype: Any, before: None) -> Array:
    return as_array(np.empty(shape, dtype))


def written(write: Callable[[Array], object], array: Array) -> Array:
    write(array)
    return array


def copied(source: Array, array: Array) -> None:
    array[...] = source


def assigned(index: Any, value: Any, array: Array) -> Array:
    array[index] = value
    return array


def operated(ufunc: Any, operands: list[Any], array: Array) -> Array:
    return ufunc(array, *operands, out=array)


def converted(dtype: Any, array: Array) -> Array:
    return array.astype(dtype)
