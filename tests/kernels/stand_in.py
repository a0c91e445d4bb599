"""An array module that behaves as CuPy does, on numpy's memory, for machines without a GPU.

What CuPy forbids is forbidden here, and also what it allows by numpy's protocols, such as np.exp(x), so that code which
passes here bypasses no call of the array's own module:

* the arrays are no numpy arrays, and numpy functions refuse them (`__array__` raises; `get()` converts);
* an operator takes Python numbers and these arrays; a numpy scalar only on the right; numpy arrays, lists: TypeError;
* reductions and indexing give 0-d arrays, never scalars; an integer index gives a view;
* the module has only what is listed below, all of which CuPy has with these arguments (CuPy 13's reference manual).

`pytest --gpu` puts CuPy itself in its place, so that the same tests run on a card.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from types import ModuleType
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pytest

# CuPy's functions that take and give arrays.
_NAMES = """
    abs all any arange argmax argpartition argsort broadcast_to clip concatenate copysign copyto cos cumprod cumsum
    divide dot einsum empty empty_like equal exp expand_dims eye floor full full_like isclose isfinite isnan log
    log1p matmul max maximum mean min minimum moveaxis multiply negative ones ones_like outer pad power prod ravel
    reshape sign sin sort split sqrt square stack subtract sum swapaxes take take_along_axis tanh tensordot tile
    transpose tril triu trunc var vdot where zeros zeros_like lib.stride_tricks.sliding_window_view linalg.norm
    fft.rfft2 fft.irfft2
"""
FUNCTIONS = _NAMES.split()
CONSTANTS = ["inf", "nan", "pi", "newaxis", "float16", "float32", "float64", "int32", "int64", "bool_", "dtype"]
TYPES = (bool, int, float, np.generic)  # what an operator takes beside arrays
METHODS = [
    *("all", "any", "argmax", "argsort", "astype", "clip", "copy", "cumsum", "dot", "fill", "flatten", "max", "mean"),
    *("min", "prod", "ravel", "repeat", "reshape", "sort", "squeeze", "std", "sum", "swapaxes", "take", "transpose"),
    *("var", "view", "argmin", "conj"),
]
BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"]
COMPARISONS = ["lt", "le", "gt", "ge", "eq", "ne"]


def lower(value: Any) -> Any:
    """The numpy array behind a stand-in; also inside lists and tuples. A numpy array is refused."""
    if isinstance(value, ndarray):
        return value._memory
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, (list, tuple)):
        return type(value)(map(lower, value))
    return value


def lift(value: Any) -> Any:
    """A result as CuPy gives it: an array, 0-d if need be."""
    if isinstance(value, (np.ndarray, np.generic)):
        return ndarray(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(lift, value))
    return value


class ndarray:  # noqa: N801  (CuPy's name)
    __array_ufunc__ = None  # numpy_thing * this: NotImplemented, then __rmul__
    __module__ = "cupy"
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, memory: Any) -> None:
        self._memory = np.asarray(memory)
        _first.setdefault(id(self._memory), self)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def get(self) -> np.ndarray:
        return self._memory.copy()

    def item(self) -> Any:
        return self._memory.item()

    def tolist(self) -> Any:
        return self._memory.tolist()

    def __len__(self) -> int:
        return len(self._memory)

    def __iter__(self) -> Iterator[ndarray]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self._memory)

    def __int__(self) -> int:
        return int(self._memory)

    def __float__(self) -> float:
        return float(self._memory)

    def __repr__(self) -> str:
        return repr(self._memory)

    def __neg__(self) -> ndarray:
        return ndarray(-self._memory)

    def __abs__(self) -> ndarray:
        return ndarray(abs(self._memory))

    def __invert__(self) -> ndarray:
        return ndarray(~self._memory)

    def __getitem__(self, index: Any) -> ndarray:
        index = _lower_index(index)
        items = index if isinstance(index, tuple) else (index,)
        if any(isinstance(item, (list, np.ndarray)) for item in items):
            return ndarray(self._memory[index].copy())
        return ndarray(self._memory[(*items, ...) if Ellipsis not in items else items])  # a view, also of one number

    def __setitem__(self, index: Any, value: Any) -> None:
        self._memory[_lower_index(index)] = lower(value)

    shape = property(lambda self: self._memory.shape)
    dtype = property(lambda self: self._memory.dtype)
    ndim = property(lambda self: self._memory.ndim)
    size = property(lambda self: self._memory.size)
    nbytes = property(lambda self: self._memory.nbytes)
    itemsize = property(lambda self: self._memory.itemsize)
    strides = property(lambda self: self._memory.strides)
    flags = property(lambda self: self._memory.flags)
    T = property(lambda self: ndarray(self._memory.T))

    @property
    def base(self) -> ndarray | None:
        memory = self._memory.base
        first = _first.get(id(memory))
        return ndarray(memory) if first is None and memory is not None else first


_first: WeakValueDictionary[int, ndarray] = WeakValueDictionary()
"""The first array with each memory, by the memory's id: as with CuPy, all its views have this very array as `base`."""


def _lower_index(index: Any) -> Any:
    """CuPy takes lists and its own arrays as indices (and numpy's, copying them to the GPU each time: refused here)."""
    if isinstance(index, tuple):
        return tuple(map(_lower_index, index))
    return index if isinstance(index, list) else lower(index)


def _operator(name: str) -> Callable[[ndarray, Any], Any]:
    """x + y; a numpy scalar on the left reaches CuPy as a numpy array, so it is refused."""

    def apply(self: ndarray, other: Any) -> Any:
        if isinstance(other, ndarray) or (
            isinstance(other, TYPES) and not (name.startswith("__r") and isinstance(other, np.generic))
        ):
            return lift(getattr(self._memory, name)(lower(other)))
        raise TypeError(f"Unsupported type {type(other)}")

    return apply


def _in_place(name: str) -> Callable[[ndarray, Any], ndarray]:
    def apply(self: ndarray, other: Any) -> ndarray:
        if not isinstance(other, (ndarray, *TYPES)):
            raise TypeError(f"Unsupported type {type(other)}")
        getattr(self._memory, name)(lower(other))
        return self

    return apply


def _method(name: str) -> Callable[..., Any]:
    def call(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        return lift(getattr(self._memory, name)(*map(lower, args), **{k: lower(v) for k, v in kwargs.items()}))

    return call


for _name in BINARY:
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(ndarray, f"__r{_name}__", _operator(f"__r{_name}__"))
    setattr(ndarray, f"__i{_name}__", _in_place(f"__i{_name}__"))
for _name in COMPARISONS:
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))
for _name in METHODS:
    setattr(ndarray, _name, _method(_name))


def _function(implementation: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return lift(implementation(*map(lower, args), **{k: lower(v) for k, v in kwargs.items()}))

    return call


def _array(value: Any, dtype: Any = None, copy: bool = True) -> ndarray:
    """From anything: the door by which numpy's arrays come in."""
    memory = value._memory if isinstance(value, ndarray) else value
    return ndarray(np.array(memory, dtype=dtype, copy=True))


def _asarray(value: Any, dtype: Any = None) -> ndarray:
    """No copy of its own arrays; always one of numpy's, which lie in the other memory."""
    if isinstance(value, ndarray):
        return value if dtype is None or value.dtype == dtype else value.astype(dtype)
    return _array(value, dtype)


class _Add:
    """cupy.add, with add.at."""

    __call__ = staticmethod(_function(np.add))

    @staticmethod
    def at(array: ndarray, index: Any, values: Any) -> None:
        np.add.at(array._memory, _lower_index(index), lower(values))


def make_module() -> ModuleType:
    module = ModuleType("cupy", __doc__)
    for name in FUNCTIONS:
        *folders, last = name.split(".")
        place: Any = module
        for folder in folders:
            place = place.__dict__.setdefault(folder, ModuleType(f"{place.__name__}.{folder}"))
        setattr(place, last, _function(attrgetter(name)(np)))
    for name in CONSTANTS:
        setattr(module, name, getattr(np, name))
    module.ndarray, module.array, module.asarray, module.ascontiguousarray = ndarray, _array, _asarray, _asarray
    module.asnumpy = lambda array: array.get() if isinstance(array, ndarray) else np.asarray(array)
    module.add = _Add()
    return module


real: list[ModuleType] = []
"""CuPy, with `pytest --gpu`."""


def use_the_gpu() -> None:
    """Let `installed` give CuPy itself from now on; pytest.UsageError where it has no card."""
    try:
        cupy = importlib.import_module("cupy")
        cupy.zeros(1)
    except Exception as error:  # CuPy is missing, or the driver, or the card
        raise pytest.UsageError(f"--gpu needs CuPy and an NVIDIA GPU: {error}") from error
    real.append(cupy)


@contextmanager
def installed() -> Iterator[ModuleType]:
    """The stand-in as `import cupy` finds it, for a while; with `--gpu`, CuPy."""
    if real:
        yield real[0]
        return
    former = sys.modules.get("cupy")
    module = sys.modules["cupy"] = make_module()
    try:
        yield module
    finally:
        if former is None:
            del sys.modules["cupy"]
        else:
            sys.modules["cupy"] = former
