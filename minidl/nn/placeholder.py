"""Placeholder: a parameter or buffer without values: this rank does not hold it, or `nn.building` is still open.

    Absent         its array: shape and dtype, one number in memory; reading its values raises
    Placeholder    its tensor: an operation that uses it raises, so that no model computes with missing weights

Inside `nn.building` an Absent also has a recipe, by which `values()` makes the array: steps kept until it is known
which rank holds the parameter. The first step gives an array: the one that the parameter was made from, or new memory
for an init call to fill. The others are that call, the writes after it, and conversions to another type.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from minidl import kernels
from minidl.kernels import Array
from minidl.kernels.sixteen_bit import is_floating_point
from minidl.nn.parameter import on_new
from minidl.tensor import Tensor, as_array
from minidl.tensor.tensor import ElementCount

Recipe = tuple[Callable[[Any], Array], ...]  # each step gets the array of the step before it, the first one None

_array: Any = Tensor.__dict__["_data"]  # the slot of a tensor's array; Placeholder hides it by a property

_VISIBLE = {"shape", "dtype", "ndim", "size", "nbytes", "itemsize", "strides", "flags", "base", "astype"}


def empty(*shape: int) -> Array:
    """Return a float32 array for an init call to fill; inside `nn.building` it takes no memory.

    >>> empty(3, 2).shape
    (3, 2)
    """
    if on_new.get() is None:
        return np.empty(shape, np.float32)
    module = kernels.new_array_module()
    return module.broadcast_to(module.zeros((), np.float32), shape)


class Absent(np.ndarray):
    """The array of a Placeholder: shape and dtype without values; strides are 0, so that it takes no memory.

    `shape`, `dtype`, `ndim`, `size`, `nbytes` (of the whole array), `strides` and `astype` work. Everything that reads
    values raises RuntimeError. Its memory is one nan (the smallest integer), read-only.

    Inside `nn.building`, `x[index] = value` and `x *= value` are recorded, and applied when the array is made.
    """

    recipe: Recipe | None  # None: after the block
    made: Array | None = None  # the recipe's result, for all parameters that share this array
    name: str  # of the parameter in the model, "" if unknown

    def refusal(self) -> RuntimeError:
        """Return the error of an attempt to use the values."""
        if self.recipe is not None:
            return RuntimeError(
                f"a Parameter of shape {self.shape} has no values inside nn.building: fill it with a function of "
                "nn.init, or do this to the model after the block"
            )
        return RuntimeError(
            f"this rank does not hold {self.name or f'a parameter of shape {self.shape}'}: nn.building(part) made the "
            "arrays of this rank's part alone; compute with the modules and stages of that part"
        )

    def remember(self, step: Callable[[Any], Array]) -> None:
        """Add a step to the recipe."""
        if self.recipe is None:
            raise self.refusal()
        self.recipe = (*self.recipe, step)

    def values(self) -> Array:
        """Make the array that the recipe describes, once."""
        if self.recipe is None:
            raise self.refusal()
        if self.made is None:
            array: Any = None
            for step in self.recipe:
                array = step(array)
            self.made = array
        return self.made

    def astype(self, dtype: Any, *options: Any, **more: Any) -> Any:
        """Return the Absent of another type, whose values are converted when they are made."""
        convert: Callable[[Any], Array] = partial(converted, np.dtype(dtype))
        recipe = None if self.recipe is None else (*self.recipe, convert)
        return absent(self.shape, dtype, recipe, self.name)

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") or name in _VISIBLE or name not in _ARRAY_METHODS:
            return super().__getattribute__(name)
        raise self.refusal()

    def __setitem__(self, index: Any, value: Any) -> None:
        self.remember(partial(assigned, index, operand_now(value)))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        first, *others = inputs
        in_place = method == "__call__" and first is self and set(options) == {"out"} and options["out"] == (self,)
        if not in_place or any(isinstance(other, Absent) for other in others):
            raise next(x for x in (*inputs, *options.get("out", ())) if isinstance(x, Absent)).refusal()
        self.remember(partial(operated, ufunc, [operand_now(other) for other in others]))
        return self

    def __array_function__(self, *args: Any) -> Any:
        raise self.refusal()

    def _refuse(self, *args: Any) -> Any:
        raise self.refusal()

    __getitem__ = __iter__ = __contains__ = __bool__ = __float__ = __int__ = __index__ = __format__ = _refuse

    def __repr__(self) -> str:
        return f"Absent({self.shape}, {self.dtype})"

    __str__ = __repr__

    def __deepcopy__(self, memo: Any) -> Absent:
        return absent(self.shape, self.dtype, copy.deepcopy(self.recipe, memo), self.name)

    def __reduce__(self) -> Any:
        if self.recipe is not None:
            raise self.refusal()
        return absent, (self.shape, self.dtype, None, self.name)


_ARRAY_METHODS = set(dir(np.ndarray))


def absent(shape: tuple[int, ...], dtype: Any, recipe: Recipe | None = None, name: str = "") -> Absent:
    """Return an array without values; its one number is nan, or the smallest of an integer type."""
    dtype = np.dtype(dtype)
    number = np.array(np.nan if is_floating_point(dtype) else np.iinfo(dtype).min if dtype.kind in "iu" else 0, dtype)
    array = np.broadcast_to(number, shape).view(Absent)
    array.recipe, array.name = recipe, name
    return array


class Placeholder(Tensor):
    """A Parameter or Buffer without values: it has a name, shape and type, but no array and no gradient.

    Its class derives from this one and from the class that it has when it is held (`placeholder_class`). Every
    operation reads `_data`, which raises here. A forward pass of modules that this rank does not hold therefore raises,
    and a normal tensor needs no check.
    """

    __slots__ = ()

    held = False
    own: type[Tensor]  # the class that it has when it is held

    _left_out = property(lambda self: self.data.recipe is None)

    @property
    def _data(self) -> Any:
        raise _array.__get__(self).refusal()

    @property
    def data(self) -> Any:
        return _array.__get__(self)

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, Absent):
            if self.data.recipe is None:
                raise self.data.refusal()
            value = as_array(value)
            value = absent(value.shape, value.dtype, (content(value),))
        _array.__set__(self, value)

    def copy_(self, source: Any) -> Tensor:
        array = copy.copy(as_array(source))
        if self.data.recipe is None:
            raise self.data.refusal()
        return self.overwrite(partial(copied, array))

    def overwrite(self, write: Callable[[Array], object]) -> Tensor:
        """Replace the recipe by `write(array)`, which fills the whole array. After the block, do nothing."""
        now = self.data
        if now.recipe is not None:
            now.recipe = partial(allocated, now.shape, now.dtype), partial(written, write)
        return self

    def make(self) -> None:
        """Make the values and become a normal tensor."""
        values = self.data.values()
        shard = getattr(self, "shard", None)
        _array.__set__(self, values if shard is None else shard.cut(values))
        self.__class__ = self.own  # type: ignore[assignment]

    def close(self, name: str) -> None:
        """Drop the recipe, since this rank does not hold the values."""
        _array.__set__(self, absent(self.shape, self.dtype, None, name))

    shape = property(lambda self: self.data.shape)
    dtype = property(lambda self: self.data.dtype)
    ndim = property(lambda self: self.data.ndim)
    size = property(lambda self: ElementCount(self.data))

    def numel(self) -> int:
        return self.data.size

    def dim(self) -> int:
        return self.data.ndim

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"{self.own.__name__}(not held, shape {self.shape}, {self.dtype})"

    def __reduce__(self) -> Any:
        return _restored, (self.own, self.data, self.requires_grad, getattr(self, "shard", None))

    def __deepcopy__(self, memo: Any) -> Tensor:
        twin = _restored(self.own, copy.deepcopy(self.data, memo), self.requires_grad, getattr(self, "shard", None))
        memo[id(self)] = twin
        return twin


def become_placeholder(tensor: Tensor, array: Absent) -> None:
    """Replace the tensor's array by one without values."""
    own: Any = type(tensor)
    tensor.__class__ = placeholder_class(own)
    tensor._memory = None  # it shares no memory any more
    _array.__set__(tensor, array)


@cache
def placeholder_class(own: type[Tensor]) -> type[Placeholder]:
    """Return the class of placeholders for tensors of the class `own`."""
    return type(own.__name__, (Placeholder, own), {"__slots__": (), "own": own})


def _restored(own: type[Tensor], array: Absent, requires_grad: bool, shard: Any) -> Tensor:
    """Make a placeholder from a copied or pickled one; inside `nn.building` it belongs to the block."""
    tensor = Tensor.__new__(own)
    Tensor.__init__(tensor, np.zeros((), array.dtype), requires_grad)
    if shard is not None or hasattr(own, "shard"):
        tensor.shard = shard  # type: ignore[attr-defined]
    become_placeholder(tensor, array)
    if array.recipe is not None and (notify := on_new.get()) is not None:
        notify(tensor)
    return tensor


# ---- recipes: each step is a function whose last argument is the array of the step before ----


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
