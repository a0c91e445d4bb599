"""The values that may come back from a student's process: numbers, text, arrays, and containers of these.

Any other value is replaced by the name of its type before it is sent. A value travels as JSON, with the bytes of arrays
behind it. So what `loads` returns can neither run code nor compare equal to everything, and the memory that it takes is
known before it is decoded.
"""

from __future__ import annotations

import json
import math
import reprlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from course.sandbox.exchange.json_bounds import check_size

DEEPEST = 40
"""Levels of nested lists that are sent."""

MOST_ITEMS = 200_000
"""Items of all lists, dicts and sets together; larger results should be arrays."""

MOST_KEYS = 10_000
"""Keys of dicts and items of sets; keys can be chosen so that each is compared with all others (hash collisions)."""

MOST_TEXT = 2**24
"""Characters of all text and numbers together."""

MOST_DIGITS = 4_000
"""Digits of an integer; Python itself converts at most 4,300 to text."""

TOO_LONG = 10**MOST_DIGITS

VALUES_OF_ITEM, LEVELS_OF_ITEM = 12, 2
"""The most that one item takes in JSON, such as an array with its type, shape and position."""

ARRAY_KINDS = "biufcSUmM"


@dataclass(frozen=True, slots=True)
class Foreign:
    """In place of a value that is not plain data: the name of its type, and the beginning of its repr."""

    type_name: str
    text: str = ""

    def __str__(self) -> str:
        return f"{'an' if self.type_name.lower().startswith(('a', 'e', 'i', 'o', 'nd')) else 'a'} {self.type_name}"


class DamagedError(ValueError):
    """The bytes are not what `dumps` writes."""


def dumps(value: Any) -> bytes:
    """`value` as bytes. A subclass becomes its plain base type; a value that is not plain becomes Foreign.

    Raises ValueError for too many items.
    """
    writer = _Writer()
    tree = json.dumps(writer.tree(value)).encode()
    if len(tree) > MOST_TEXT:
        raise ValueError(f"what it returned has more than {MOST_TEXT:,} characters of text and numbers; return arrays")
    sizes = json.dumps([len(tree), *map(len, writer.buffers)]).encode()
    return b"".join([b"%08d" % len(sizes), sizes, tree, *writer.buffers])


def loads(data: bytes | bytearray) -> Any:
    """The value that `dumps` wrote. Raises DamagedError for anything else."""
    try:
        begin = 8 + int(data[:8])
        head = data[8:begin]
        check_size(head, MOST_ITEMS + 2, 1)
        tree, *buffers = _cut(data, begin, json.loads(head))
        if len(tree) > MOST_TEXT:
            raise ValueError("too much text")
        text = bytes(tree)
        check_size(text, VALUES_OF_ITEM * (MOST_ITEMS + 1), LEVELS_OF_ITEM * (DEEPEST + 2))
        return json.loads(text, object_pairs_hook=_Reader(buffers).value)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError) as error:
        raise DamagedError(f"not plain data: {error}") from None


class _Writer:
    """Makes the tree for JSON: plain values as they are, others as `{kind: contents}`; collects the bytes of arrays."""

    def __init__(self) -> None:
        self.buffers: list[bytes] = []
        self._items = self._keys = 0
        self._depth = 0

    def tree(self, value: Any) -> Any:
        if value is None or type(value) in (bool, str):
            return value
        if isinstance(value, float):
            return float.__float__(value)  # an np.float64 is one, too
        if isinstance(value, int):
            number = int.__int__(value)
            return number if abs(number) < 2**63 else _long(number)
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, np.ndarray | np.generic):
            return self._array(np.array(value, subok=False), isinstance(value, np.generic), value)
        if isinstance(value, bytes | bytearray):
            return {"bytes": self._buffer(bytes(value))}
        if isinstance(value, list | tuple | dict | set | frozenset):
            return self._container(value)
        if isinstance(value, Foreign):
            return {"foreign": [str(value.type_name), str(value.text)]}
        return _foreign(value)

    def _container(self, value: Any) -> Any:
        if self._depth == DEEPEST:
            return {"foreign": [f"{type_name(value)} in {DEEPEST} others, or in itself", ""]}
        self._depth += 1
        kind = next(kind for kind in (list, tuple, dict, set, frozenset) if isinstance(value, kind))
        contents: list[Any] = []
        for item in dict.items(value) if kind is dict else kind.__iter__(value):
            self._items += 1
            if self._items > MOST_ITEMS:
                raise ValueError(f"what it returned has more than {MOST_ITEMS:,} items in lists; return arrays")
            if kind is dict:
                contents.append([self._key(item[0]), self.tree(item[1])])
            else:
                contents.append(self.tree(item) if kind in (list, tuple) else self._key(item))
        self._depth -= 1
        return contents if kind is list else {"set" if kind is frozenset else kind.__name__: contents}

    def _key(self, value: Any) -> Any:
        """A key of a dict or an item of a set; one that is not plain or not hashable is replaced by its text."""
        self._keys += 1
        if self._keys > MOST_KEYS:
            raise ValueError(f"what it returned has more than {MOST_KEYS:,} keys of dicts and items of sets")
        if isinstance(value, tuple):
            return {"tuple": [self._key(item) for item in tuple.__iter__(value)]}
        is_plain = isinstance(value, int | float | complex | str | np.number | np.bool_ | None)
        return self.tree(value) if is_plain else text_of(value) or type_name(value)

    def _array(self, value: Any, is_scalar: bool, original: Any) -> Any:
        if value.dtype.kind not in ARRAY_KINDS:
            return _foreign(original)
        if value.dtype.type in (np.longdouble, np.clongdouble):
            value = value.astype(complex if value.dtype.kind == "c" else float)
        if is_scalar and value.dtype.kind in "biufcU":
            return self.tree(value.item())
        return {"array": [value.dtype.str, list(value.shape), self._buffer(value.tobytes())]}

    def _buffer(self, data: bytes) -> int:
        self.buffers.append(data)
        return len(self.buffers) - 1


def _long(number: int) -> dict[str, Any]:
    """An integer of many digits; one with too many is described approximately."""
    if abs(number) < TOO_LONG:
        return {"int": hex(number)}
    return {"foreign": [about(number), ""]}


def about(number: int) -> str:
    """An integer that is too long to be written: its number of digits and the first of them, quickly."""
    shift = number.bit_length() - 64
    logarithm = math.log10(abs(number) >> shift) + shift * math.log10(2)
    first = f"{'-' * (number < 0)}{10 ** (logarithm % 1):.4f}".replace(".", "")
    return f"whole number of {int(logarithm) + 1:,} digits, {first}…"


def _foreign(value: Any) -> dict[str, Any]:
    name = type_name(value)
    if isinstance(value, np.ndarray):
        name = f"{name} of Python objects" if value.dtype.kind == "O" else f"{name} of {value.dtype}"
    return {"foreign": [name, text_of(value)]}


def _cut(data: bytes | bytearray, begin: int, sizes: list[int]) -> list[memoryview]:
    buffers = []
    for size in sizes:
        buffers.append(memoryview(data)[begin : begin + size])
        begin += size
        if size < 0 or len(buffers[-1]) != size:
            raise ValueError("cut off")
    if begin != len(data):
        raise ValueError("more than was announced")
    return buffers


class _Reader:
    """Makes values from `_Writer`'s tree, the innermost first; each buffer of bytes is used once."""

    def __init__(self, buffers: list[memoryview]) -> None:
        self._buffers = dict(enumerate(buffers))
        self._keys = 0

    def value(self, pairs: list[tuple[str, Any]]) -> Any:
        ((kind, contents),) = pairs
        if kind == "array":
            dtype, shape, number = contents
            return _array(np.dtype(str(dtype)), shape, self._buffers.pop(number))
        if kind == "bytes":
            return bytes(self._buffers.pop(contents))
        if kind == "foreign":
            name, text = contents
            return Foreign(writable(str(name)[:300]), writable(str(text)[:300]))
        if kind == "int":
            number = int(contents, 16)
            if abs(number) >= TOO_LONG:
                raise ValueError("a number of too many digits")
            return number
        if kind == "complex":
            return complex(*contents)
        if kind == "tuple":
            return tuple(contents)
        self._keys += len(contents)
        if self._keys > MOST_KEYS:
            raise ValueError("too many keys")
        return {"dict": dict, "set": set}[kind](contents)


def writable(text: str) -> str:
    """A text that can be written to a file: lone surrogates become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _array(dtype: np.dtype[Any], shape: list[int], data: memoryview) -> np.ndarray[Any, Any]:
    count = math.prod(shape)
    if dtype.kind not in ARRAY_KINDS or len(data) != count * dtype.itemsize or (count and not dtype.itemsize):
        raise ValueError("an array of another size")
    return np.frombuffer(data, dtype).reshape(shape).copy() if data else np.zeros(shape, dtype)


def type_name(value: Any) -> str:
    """The name of a value's type, such as `Tensor`, `function` or `generator`."""
    return type.__dict__["__name__"].__get__(type(value))[:200]


def text_of(value: Any) -> str:
    """The beginning of repr(value); "" if that fails."""
    try:
        return str.__str__(repr(value))[:200]
    except Exception:  # a student's own __repr__: whatever it does, the type's name is enough
        return ""


class _Short(reprlib.Repr):
    """A repr that is short and fast for any value, also for integers too long for Python to convert."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 12
        self.maxtuple = self.maxlist = self.maxdict = self.maxset = self.maxfrozenset = 60
        self.maxstring = self.maxother = 200
        self.maxlong = 150

    def repr_int(self, value: int, level: int) -> str:
        try:
            return super().repr_int(value, level)
        except ValueError:
            return f"a {about(value)}"


def described(value: Any) -> str:
    """The beginning of repr(value), in bounded time, for any value."""
    try:
        return _Short().repr(value)
    except Exception:  # an object of Python's own may refuse, too
        return f"a value of type {type_name(value)}"
