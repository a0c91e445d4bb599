"""The argument of a reduction: validated, flattened, and returned in its original form.

Arithmetic is numpy's, in the dtype of the array, so sums of integer arrays wrap around. There are two exceptions:

* A single whole number is reduced exactly or refused. A sum is refused if the same number on all ranks would not fit
  in 64 bits. A product is sent as a Python int, which has no limit.
* The mean of float16 or bfloat16 is computed and sent in float32: a sum could exceed 65,504, the largest float16, and
  bfloat16 has only 8 significant bits.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from minidl.arguments import one_of
from minidl.cluster.channel import REDUCE
from minidl.cluster.diagnosis.fingerprints import Fingerprint
from minidl.cluster.phantom import Phantom
from minidl.cluster.rank import refuse_tensors

HALF = 1 << 63  # int64 holds -HALF, ..., HALF - 1


class Operand:
    """The x of a reduction: an array of numbers, a single number, or a Phantom.

    contiguous   x as a contiguous array in the dtype of the arithmetic; x itself if it is one already
    flat         the same array in one dimension
    """

    __slots__ = ("_dtype", "_op", "_shape", "_x", "contiguous", "flat", "is_exact", "is_phantom", "is_scalar")

    def __init__(self, x: Any, op: str, operation: str, size: int, is_written: bool = False) -> None:
        if type(op) is not str or op not in REDUCE:  # tested here first, because one_of takes a microsecond
            one_of("op", op, REDUCE)
        self._x, self._op = x, op
        if type(x) is np.ndarray and x.dtype.kind in ("fc" if op == "mean" else "biufc"):
            self.is_phantom = self.is_scalar = self.is_exact = False
            flags, dtype = x.flags, x.dtype
            if flags.c_contiguous and flags.writeable and dtype.char != "e":  # the usual case first
                self._dtype, self._shape = dtype, x.shape
                self.contiguous: npt.NDArray[Any] = x
                self.flat: npt.NDArray[Any] = x if x.ndim == 1 else x.reshape(-1)
                return
            array = x
        else:
            array = self._checked(x, operation, size)
        self._dtype = array.dtype
        self._shape = array.shape
        if is_written and isinstance(x, np.ndarray) and not x.flags.writeable:
            raise ValueError(f"{operation} writes the result into x, but x is read-only: pass a copy, x.copy()")
        if op == "mean" and (array.dtype.char == "e" or _is_bfloat16(array.dtype)):
            array = array.astype(np.float32)
        self.contiguous = array if self.is_phantom else np.ascontiguousarray(array)
        self.flat = self.contiguous.reshape(-1)

    def _checked(self, x: Any, operation: str, size: int) -> Any:
        """Return x as an array, or as it is if it is a Phantom; raise TypeError unless it can be reduced."""
        op = self._op
        refuse_tensors(operation, x)
        if isinstance(x, (list, tuple)):
            raise TypeError(
                f"{operation} takes an array of numbers or a number, not {type(x).__name__}: make it an array"
            )
        self.is_phantom = isinstance(x, Phantom)
        self.is_scalar = not self.is_phantom and not isinstance(x, np.ndarray)
        self.is_exact = self.is_scalar and op == "prod" and _is_whole(x)
        if self.is_scalar and not self.is_exact:
            x = _number(x, op, operation, size)
        array = np.array(int(x), object) if self.is_exact else np.array(x) if self.is_scalar else x
        is_numeric = array.dtype.kind in "biufc" or _is_bfloat16(array.dtype)
        if not self.is_exact and (not is_numeric or (self.is_scalar and array.ndim > 0)):
            raise TypeError(
                f"{operation} takes an array of numbers or a number, not {type(x).__name__} ({array.dtype})"
            )
        if type(x) is not np.ndarray and isinstance(x, np.ma.MaskedArray):
            raise TypeError(
                f"{operation} would lose the mask of a masked array: pass an array without one, x.filled(0)"
            )
        if op == "mean" and array.dtype.kind in "biu":
            raise TypeError(
                f"the mean of {array.dtype} has no place in an {array.dtype} array: convert it to float first"
            )
        return array

    def fingerprint(
        self, operation: str, *, root: int | None = None, algorithm: str | None = None, label: str | None = None
    ) -> Fingerprint:
        """Return the fingerprint of the call: what must be equal on all ranks."""
        dtype, shape = ("int", ()) if self.is_exact else (self._dtype, self._shape)
        return _fingerprint(operation, self._op, root, algorithm, dtype, shape, label)

    def result(self, flat: npt.NDArray[Any], size: int) -> Any:
        """Return x with the reduced values: the same array, or a new number."""
        if self.is_exact:
            return self._exact_result(flat)
        flat = self.mean_of(flat, size)
        if self.is_phantom or (flat is self.flat and self.contiguous is self._x):
            return self._x
        if self.is_scalar:
            return flat[0] if isinstance(self._x, np.generic) else flat[0].item()
        if not np.may_share_memory(flat, self._x):
            self._x[...] = flat.reshape(self._x.shape)
        return self._x

    def mean_of(self, total: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
        """Return the total in the dtype of x, divided by `size` for op "mean"; in place if it has that dtype."""
        if self._op == "mean":
            total /= size
        return total if total.dtype == self._dtype else total.astype(self._dtype)

    def _exact_result(self, flat: npt.NDArray[Any]) -> Any:
        if not isinstance(self._x, np.integer):
            return flat[0]
        if not _fits(flat[0], self._x.dtype):
            raise OverflowError(f"the product is {flat[0]}, more than {self._x.dtype} holds: pass a Python int, int(x)")
        return self._x.dtype.type(flat[0])


@lru_cache(4096)
def _fingerprint(
    operation: str,
    op: str,
    root: int | None,
    algorithm: str | None,
    dtype: np.dtype[Any] | str,
    shape: tuple[int, ...],
    label: str | None,
) -> Fingerprint:
    """Cached, because training makes the same calls in every step."""
    name = dtype if isinstance(dtype, str) else dtype.str
    return Fingerprint(operation, op, root, algorithm, name, shape, label)


def check_items(operation: str, items: Any, size: int) -> None:
    """Raise ValueError unless `items` has one item for each of `size` ranks."""
    if not hasattr(items, "__len__") or len(items) != size:
        got = f"{len(items)} items" if hasattr(items, "__len__") else type(items).__name__
        raise ValueError(f"{operation} takes a list of {size} items, one for each rank, got {got}")
    refuse_tensors(operation, *items)


def _number(x: Any, op: str, operation: str, size: int) -> Any:
    """Return the single number x in a type that can hold the result."""
    if op == "sum" and type(x) is int and -HALF <= x * size < HALF:
        return x  # the usual case first: training reduces numbers in every step
    if op == "mean" and (_is_whole(x) or isinstance(x, (bool, np.bool_))):
        return np.float64(x)
    if op == "sum" and isinstance(x, (bool, np.bool_)):
        return int(x)
    if _is_whole(x):
        dtype = x.dtype if isinstance(x, np.integer) else np.dtype(np.int64)
        if not _fits(int(x) * size if op == "sum" else int(x), dtype):
            why = f"the sum of {x} on {size} ranks could overflow it" if op == "sum" else f"{x} does not fit"
            raise OverflowError(
                f"{operation} reduces a whole number in {dtype}, and {why}: "
                "all_gather the numbers and reduce the list, or pass a float"
            )
    return x


def _is_bfloat16(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "V" and dtype.name == "bfloat16"  # kind V, since numpy does not define it


def _is_whole(x: Any) -> bool:
    return isinstance(x, (int, np.integer)) and not isinstance(x, bool)


def _fits(number: int, dtype: np.dtype[Any]) -> bool:
    bits = 8 * dtype.itemsize
    return 0 <= number < 1 << bits if dtype.kind == "u" else -1 << bits - 1 <= number < 1 << bits - 1
