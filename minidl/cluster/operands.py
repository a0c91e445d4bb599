"""What a reduction is given: checked, laid out flat, and handed back in the form in which it came."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from minidl.cluster.board import Fingerprint
from minidl.cluster.channel import REDUCE
from minidl.cluster.phantom import Phantom

OPTIONS = {"pipelined_chain": {"segments"}, "hierarchical": {"per_group"}}


class Operand:
    """The x of a reduction: an array of numbers (changed in place), a single number, or a Phantom.

    `contiguous` is x as a contiguous array, x itself if it is one; `flat` is the same in one dimension.
    """

    def __init__(self, x: Any, op: str, operation: str) -> None:
        if op not in REDUCE:
            raise ValueError(f"unknown op {op!r}: choose one of {', '.join(REDUCE)}")
        self._x, self._op = x, op
        self.is_phantom = isinstance(x, Phantom)
        self.is_scalar = not self.is_phantom and not isinstance(x, np.ndarray)
        array = np.array(_number(x, op)) if self.is_scalar else x
        if array.dtype.kind not in "biufc" or (self.is_scalar and array.ndim > 0):
            raise TypeError(
                f"{operation} takes an array of numbers or a number, not {type(x).__name__} ({array.dtype})"
            )
        if op == "mean" and array.dtype.kind not in "fc":
            raise TypeError(
                f"the mean of {array.dtype} has no place in an {array.dtype} array: convert it to float first"
            )
        if operation == "all_reduce" and isinstance(x, np.ndarray) and not x.flags.writeable:
            raise ValueError("all_reduce writes the result into x, but x is read-only: pass a copy, x.copy()")
        self.contiguous: npt.NDArray[Any] = array if self.is_phantom else np.ascontiguousarray(array)
        self.flat: npt.NDArray[Any] = self.contiguous.reshape(-1)

    def fingerprint(
        self, operation: str, *, root: int | None = None, algorithm: str | None = None, label: str | None = None
    ) -> Fingerprint:
        """What all ranks must agree upon."""
        dtype, shape = self.contiguous.dtype.str, self.contiguous.shape
        return Fingerprint(
            operation, op=self._op, root=root, algorithm=algorithm, dtype=dtype, shape=shape, label=label
        )

    def result(self, flat: npt.NDArray[Any], size: int) -> Any:
        """x with the reduced values: the array itself, or of a number the new value."""
        flat = self.mean_of(flat, size)
        if self.is_phantom:
            return self._x
        if self.is_scalar:
            return flat[0] if isinstance(self._x, np.generic) else flat[0].item()
        if not np.may_share_memory(flat, self._x):
            self._x[...] = flat.reshape(self._x.shape)
        return self._x

    def mean_of(self, total: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
        """The sum, or for op "mean" the mean, in the same memory."""
        if self._op == "mean":
            total /= size
        return total


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
    return int(x) if op == "sum" and isinstance(x, (bool, np.bool_)) else x
