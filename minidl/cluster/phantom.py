"""Phantom: an array without contents, for simulations in which only sizes matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import EllipsisType, SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from minidl.arguments import whole_number


class Phantom:
    """A one-dimensional array of `nbytes` bytes without contents: its messages have that size, but it takes no memory.

    Sending, reducing and splitting give another Phantom; nothing is computed.

    Parameters
        nbytes   its size, a multiple of the size of `dtype`
        dtype    type of its elements

    >>> gradient = Phantom(400_000_000)
    >>> gradient.size, gradient[:10].nbytes
    (100000000, 40)

    Raises ValueError for a negative size, or one that is no whole number of elements.
    """

    __slots__ = ("dtype", "nbytes", "size")

    def __init__(self, nbytes: int, dtype: npt.DTypeLike = np.float32) -> None:
        self.dtype = np.dtype(dtype)
        self.nbytes = whole_number("nbytes", nbytes, at_least=0)
        if self.nbytes % self.dtype.itemsize:
            raise ValueError(
                f"nbytes must be a multiple of {self.dtype.itemsize}, the size of {self.dtype}, got {nbytes}"
            )
        self.size = self.nbytes // self.dtype.itemsize

    ndim = 1
    flags = SimpleNamespace(c_contiguous=True)

    @property
    def shape(self) -> tuple[int]:
        return (self.size,)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"Phantom({self.nbytes}, {self.dtype.name!r})"

    def __getitem__(self, index: slice | EllipsisType) -> Phantom:
        if index is Ellipsis:
            return self
        if not isinstance(index, slice):
            raise TypeError(f"a Phantom has no items, only slices: got the index {index!r}")
        return self._of(len(range(*index.indices(self.size))))

    def __setitem__(self, index: slice | EllipsisType, value: Any) -> None:
        if self[index].size != np.size(value):
            raise ValueError(f"{np.size(value)} items cannot be written into {self[index].size}")

    def __itruediv__(self, divisor: float) -> Phantom:  # the mean divides a sum
        return self

    def reshape(self, *shape: int) -> Phantom:
        if shape not in ((-1,), (self.size,)):
            raise ValueError(f"a Phantom has one dimension: it cannot be reshaped to {shape}")
        return self

    def copy(self) -> Phantom:
        return self

    def astype(self, dtype: npt.DTypeLike) -> Phantom:
        return Phantom(self.size * np.dtype(dtype).itemsize, dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple[Any, ...] = (), **_: Any) -> Any:
        """Arithmetic takes no time and gives no values: the result has the size of the operands."""
        if method != "__call__" or len({np.size(x) for x in inputs} - {1}) > 1:
            return NotImplemented
        return out[0] if out else self

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        if function not in _FUNCTIONS:
            raise TypeError(
                f"np.{function.__name__} needs what a Phantom does not have, its contents: slice and send it, or use "
                f"{', '.join(sorted(f'np.{known.__name__}' for known in _FUNCTIONS))}"
            )
        return _FUNCTIONS[function](*args, **kwargs)

    def _of(self, size: int) -> Phantom:
        new = Phantom.__new__(Phantom)
        new.dtype, new.size, new.nbytes = self.dtype, size, size * self.dtype.itemsize
        return new


def _array_split(x: Phantom, sections: int) -> list[Phantom]:
    """As `np.array_split`: the first chunks are longer by one element."""
    least, longer = divmod(x.size, sections)
    return [x._of(least + 1)] * longer + [x._of(least)] * (sections - longer)


def _concatenate(xs: Sequence[Phantom]) -> Phantom:
    return xs[0]._of(sum(x.size for x in xs))


def _empty_like(x: Phantom, shape: int | tuple[int, ...] | None = None, dtype: npt.DTypeLike | None = None) -> Phantom:
    size = x.size if shape is None else int(np.prod(shape))
    return x._of(size) if dtype is None else Phantom(size * np.dtype(dtype).itemsize, dtype)


def _size(x: Phantom) -> int:
    return x.size


_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.array_split: _array_split,
    np.concatenate: _concatenate,
    np.empty_like: _empty_like,
    np.size: _size,
}
