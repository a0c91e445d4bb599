"""Arrays without contents: with `Hollow` operands, the kernels in `reference/` compute shapes and types, no numbers.

A Hollow array takes the memory of one number, whatever its shape. Views, arithmetic, reductions and products of Hollow
arrays are Hollow, so that a model of any size can be run to count its work (`nn.count`). `array_module` returns this
file for them: it has the functions that would make a new array, and numpy's for all else.

>>> x = empty((2, 1000, 1000, 1000))
>>> (x[0] @ x[1] + 1).mean(axis=0).shape, x.nbytes
((1000, 1000), 8000000000)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

Shape = tuple[int, ...]


class NoContents(RuntimeError):  # noqa: N818  (the name says what is missing)
    """A program that depends on numbers ran where shapes alone are computed."""


class Hollow(np.ndarray):
    """An array with shape and type, but no contents. Writing does nothing; reading a number raises NoContents."""

    @property
    def base(self) -> Any:  # the first Hollow array of its views owns the memory
        below = np.ndarray.base.__get__(self)
        return below if isinstance(below, Hollow) else None

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        if out is not None or method == "at":
            return None if out is None else out[0]
        shapes = [np.shape(operand) for operand in inputs]
        kinds = tuple(getattr(operand, "dtype", type(operand)) for operand in inputs)
        if method == "reduce":
            dtype = options.get("dtype") or _result_type(ufunc, kinds * 2)
            return empty(_reduced(shapes[0], options.get("axis", 0), options.get("keepdims", False)), dtype)
        if method == "accumulate":
            return empty(shapes[0], options.get("dtype") or _result_type(ufunc, kinds * 2))
        if method != "__call__":
            return NotImplemented
        if ufunc is np.matmul:
            shape = _of_product(*shapes)
        else:
            shape = shapes[0] if len(set(shapes)) == 1 else np.broadcast_shapes(*shapes)
        return empty(shape, options.get("dtype") or _result_type(ufunc, kinds))

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        lead = next((i for i, part in enumerate(keys) if isinstance(part, (np.ndarray, list))), None)
        if lead is None:
            return super().__getitem__(key)
        before, arrays = keys[:lead], keys[lead:]
        if all(part is Ellipsis or part == slice(None) for part in before) and all(map(_is_index, arrays)):
            at = self.ndim - len(arrays) if Ellipsis in before else lead
            indexed = np.broadcast_shapes(*(part.shape for part in arrays))
            return empty((*self.shape[:at], *indexed, *self.shape[at + len(arrays) :]), self.dtype)
        return empty(np.broadcast_to(np.False_, self.shape)[key].shape, self.dtype)  # numpy's rule; in its memory

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def _refuse(self, *args: Any) -> Any:
        raise NoContents(
            f"the program reads numbers of an array {self.shape} without contents: where shapes alone are computed, as "
            "by nn.count, nothing may depend on the values"
        )

    __bool__ = __float__ = __int__ = __index__ = __iter__ = item = tolist = _refuse

    def copy(self, order: Any = "C") -> Hollow:
        return empty(self.shape, self.dtype)

    def astype(self, dtype: Any, *options: Any, **more: Any) -> Hollow:
        return empty(self.shape, dtype)

    def dot(self, other: Any, out: Any = None) -> Any:
        return self @ other


def empty(shape: int | Sequence[int], dtype: Any = np.float32) -> Hollow:
    """Return an array of this shape and type without contents."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return Hollow(shape, dtype, np.zeros((), dtype), strides=(0,) * len(shape))


zeros = ones = empty


def full(shape: int | Sequence[int], value: Any, dtype: Any = np.float32) -> Hollow:
    return empty(shape, dtype)


def empty_like(x: Any, dtype: Any = None, shape: Any = None) -> Hollow:
    return empty(x.shape if shape is None else shape, dtype or x.dtype)


zeros_like = ones_like = empty_like


def full_like(x: Any, value: Any, dtype: Any = None) -> Hollow:
    return empty(x.shape, dtype or x.dtype)


def ascontiguousarray(x: Any, dtype: Any = None) -> Any:
    return x if dtype in (None, x.dtype) else x.astype(dtype)


def asarray(x: Any, dtype: Any = None) -> Any:
    return ascontiguousarray(x, dtype) if isinstance(x, Hollow) else np.asarray(x, dtype)


def array(x: Any, dtype: Any = None) -> Hollow:
    return empty(np.shape(x), dtype or x.dtype)


def where(condition: Any, x: Any, y: Any) -> Hollow:
    kinds = tuple(getattr(operand, "dtype", type(operand)) for operand in (x, y))
    return empty(np.broadcast_shapes(*map(np.shape, (condition, x, y))), _result_type(np.maximum, kinds))


def broadcast_to(x: Any, shape: Shape) -> Any:
    return np.broadcast_to(x, shape, subok=True)


def pad(x: Any, widths: Sequence[tuple[int, int]]) -> Hollow:
    return empty([size + sum(width) for size, width in zip(x.shape, widths, strict=True)], x.dtype)


def concatenate(arrays: Sequence[Any], axis: int = 0) -> Hollow:
    shape = list(arrays[0].shape)
    shape[axis] = sum(array.shape[axis] for array in arrays)
    return empty(shape, arrays[0].dtype)


def stack(arrays: Sequence[Any], axis: int = 0) -> Hollow:
    return concatenate([np.expand_dims(array, axis) for array in arrays], axis)


def tensordot(x: Any, y: Any, axes: tuple[Sequence[int], Sequence[int]]) -> Hollow:
    kept = [
        size for array, gone in zip((x, y), axes, strict=True) for i, size in enumerate(array.shape) if i not in gone
    ]
    return empty(kept, np.result_type(x.dtype, y.dtype))


def __getattr__(name: str) -> Any:
    return getattr(np, name)


def _is_index(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype.kind in "iu"


def _of_product(a: Shape, b: Shape) -> Shape:
    if len(a) == 1 or len(b) == 1:
        return (*a[:-1], *b[:-2], *b[-1:]) if len(b) > 1 else a[:-1]
    if a[-1] != b[-2]:
        raise ValueError(f"matmul: {a} @ {b} do not fit")
    return (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])


def _reduced(shape: Shape, axis: Any, keepdims: bool) -> list[int]:
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    gone = {each % len(shape) for each in axes}
    return [1 if i in gone else size for i, size in enumerate(shape) if keepdims or i not in gone]


@lru_cache(maxsize=1024)
def _result_type(ufunc: Any, kinds: tuple[Any, ...]) -> Any:
    """The type of the result; `kinds`: types of arrays, or of Python's numbers."""
    ones_of = [np.ones((1, 1), kind) if isinstance(kind, np.dtype) else kind(1) for kind in kinds]
    return ufunc(*ones_of[: ufunc.nin]).dtype
