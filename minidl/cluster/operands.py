"""The argument of a reduction: checked, laid out flat, and returned in its original form.

Arithmetic is numpy's, in the dtype of the array, so sums of integers wrap around. There are two exceptions:

* A single whole number is reduced exactly, as Python would: its sum travels as two 64-bit numbers, the upper and the
  lower bits, neither of which can overflow; its product travels as a Python int.
* The mean of float16 is computed, and travels, in float32: the sum would overflow at 65,504.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from minidl.cluster.board import Fingerprint
from minidl.cluster.channel import REDUCE
from minidl.cluster.phantom import Phantom

OPTIONS = {"pipelined_chain": {"segments"}, "hierarchical": {"per_group"}}
LOW_BITS, HIGH_BITS = 32, 42  # of a whole number in a sum: 2**20 ranks can add such halves in 64 bits


class Operand:
    """The x of a reduction: an array of numbers, a single number, or a Phantom.

    contiguous   x as a contiguous array in the dtype of the arithmetic; x itself where it is one
    flat         the same in one dimension
    """

    def __init__(self, x: Any, op: str, operation: str, is_written: bool = False) -> None:
        if op not in REDUCE:
            raise ValueError(f"unknown op {op!r}: choose one of {', '.join(REDUCE)}")
        self._x, self._op = x, op
        self.is_phantom = isinstance(x, Phantom)
        self.is_scalar = not self.is_phantom and not isinstance(x, np.ndarray)
        self.is_exact = self.is_scalar and _is_exact(x, op)
        array = _exact(int(x), op, operation) if self.is_exact else np.array(_number(x, op)) if self.is_scalar else x
        self._dtype = array.dtype
        self._shape = array.shape
        if not self.is_exact and (array.dtype.kind not in "biufc" or (self.is_scalar and array.ndim > 0)):
            raise TypeError(
                f"{operation} takes an array of numbers or a number, not {type(x).__name__} ({array.dtype})"
            )
        if isinstance(x, np.ma.MaskedArray):
            raise TypeError(
                f"{operation} would lose the mask of a masked array: pass an array without one, x.filled(0)"
            )
        if op == "mean" and array.dtype.kind not in "fc":
            raise TypeError(
                f"the mean of {array.dtype} has no place in an {array.dtype} array: convert it to float first"
            )
        if is_written and isinstance(x, np.ndarray) and not x.flags.writeable:
            raise ValueError(f"{operation} writes the result into x, but x is read-only: pass a copy, x.copy()")
        if op == "mean" and array.dtype.char == "e" and not self.is_phantom:
            array = array.astype(np.float32)
        self.contiguous: npt.NDArray[Any] = array if self.is_phantom else np.ascontiguousarray(array)
        self.flat: npt.NDArray[Any] = self.contiguous.reshape(-1)

    def fingerprint(
        self, operation: str, *, root: int | None = None, algorithm: str | None = None, label: str | None = None
    ) -> Fingerprint:
        """What all ranks must agree upon."""
        dtype, shape = ("int", ()) if self.is_exact else (self._dtype.str, self._shape)
        return Fingerprint(
            operation, op=self._op, root=root, algorithm=algorithm, dtype=dtype, shape=shape, label=label
        )

    def result(self, flat: npt.NDArray[Any], size: int) -> Any:
        """x with the reduced values: the array itself; for a number, the new value."""
        if self.is_exact:
            return self._exact_result(flat)
        flat = self.mean_of(flat, size)
        if self.is_phantom:
            return self._x
        if self.is_scalar:
            return flat[0] if isinstance(self._x, np.generic) else flat[0].item()
        if not np.may_share_memory(flat, self._x):
            self._x[...] = flat.reshape(self._x.shape)
        return self._x

    def mean_of(self, total: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
        """The sum, or for op "mean" the mean, in the same memory if it has the dtype of x."""
        if self._op == "mean":
            total /= size
        return total if total.dtype == self._dtype else total.astype(self._dtype)

    def _exact_result(self, flat: npt.NDArray[Any]) -> Any:
        total = (int(flat[0]) << LOW_BITS) + int(flat[1]) if self._op == "sum" else flat[0]
        if not isinstance(self._x, np.integer):
            return total
        limits = np.iinfo(self._x.dtype)
        if not limits.min <= total <= limits.max:
            raise OverflowError(
                f"the {self._op} is {total}, more than {self._x.dtype} holds: pass a Python int, int(x)"
            )
        return self._x.dtype.type(total)


def _is_exact(x: Any, op: str) -> bool:
    """Whether x is a whole number whose result could leave its dtype. The sum of True and False is a count."""
    return (op == "sum" and isinstance(x, (int, np.integer, np.bool_))) or (
        op == "prod" and isinstance(x, (int, np.integer)) and not isinstance(x, bool)
    )


def _exact(number: int, op: str, operation: str) -> npt.NDArray[Any]:
    if op == "prod":
        return np.array([number], object)
    high, low = number >> LOW_BITS, number & (1 << LOW_BITS) - 1
    if high.bit_length() > HIGH_BITS:
        raise OverflowError(
            f"{operation} sums whole numbers of up to {HIGH_BITS + LOW_BITS} bits, got one of {number.bit_length()}: "
            "all_gather them and add them up"
        )
    return np.array([high, low])


def check_algorithm(algorithm: str, known: Collection[str], options: Mapping[str, Any]) -> None:
    """Raise ValueError for an algorithm that does not exist or an option that it does not have."""
    if algorithm != "auto" and algorithm not in known:
        choices = ", ".join(["auto", *known])
        raise ValueError(f"unknown algorithm {algorithm!r} for all_reduce: choose one of {choices}")
    unknown = set(options) - OPTIONS.get(algorithm, set())
    if unknown:
        allowed = ", ".join(sorted(OPTIONS.get(algorithm, set()))) or "none"
        raise ValueError(f"all_reduce by {algorithm!r} has no option {min(unknown)!r}: its options are {allowed}")


def _number(x: Any, op: str) -> Any:
    """A single x as a number that can hold the result."""
    if op == "mean" and isinstance(x, (int, np.integer, np.bool_)):
        return np.float64(x)
    if isinstance(x, int) and not -(2**63) <= x < 2**63:
        raise OverflowError(f"op {op!r} takes whole numbers of 64 bits, got {x}: all_gather them instead")
    return x
