"""What may come back from a student's process: numbers, text, arrays, and lists, tuples, sets and dicts of these.

Whatever else a student's code returns is replaced by its type's name before it is sent. A value travels as JSON that
refers to the bytes of its arrays, so what is read (`loads`) can neither run code, nor take more memory than was sent,
nor compare equal to everything.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

DEEPEST = 40
"""Levels of lists in lists that are looked into."""

MOST_ITEMS = 200_000
"""Items of lists, dicts and sets, all together; what is larger should be an array."""

ARRAY_KINDS = "biufcSUmM"


@dataclass(frozen=True)
class Foreign:
    """In place of a value that is not plain data: the name of its type, and the beginning of its text."""

    type_name: str
    text: str = ""

    def __str__(self) -> str:
        return f"{'an' if self.type_name.lower().startswith(('a', 'e', 'i', 'o', 'nd')) else 'a'} {self.type_name}"


class DamagedError(ValueError):
    """The bytes are not what `dumps` writes."""


def dumps(value: Any) -> bytes:
    """`value` as bytes, in plain types: subclasses become what they are subclasses of, the rest becomes Foreign.

    Raises ValueError if it has too many items.
    """
    writer = _Writer()
    tree = json.dumps(writer.tree(value)).encode()
    sizes = json.dumps([len(tree), *map(len, writer.buffers)]).encode()
    return b"".join([b"%08d" % len(sizes), sizes, tree, *writer.buffers])


def loads(data: bytes) -> Any:
    """What `dumps` wrote. Raises DamagedError for anything else."""
    try:
        begin = 8 + int(data[:8])
        tree, *buffers = _cut(data, begin, json.loads(data[8:begin]))
        return _read(json.loads(bytes(tree)), buffers)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError) as error:
        raise DamagedError(f"not plain data: {error}") from None


class _Writer:
    """Makes the tree for JSON: plain values as they are, all others as `{kind: contents}`; arrays' bytes go beside."""

    def __init__(self) -> None:
        self.buffers: list[bytes] = []
        self._items = 0
        self._depth = 0

    def tree(self, value: Any) -> Any:
        if value is None or type(value) in (bool, str):
            return value
        if isinstance(value, float):
            return float.__float__(value)  # an np.float64 is one, too
        if isinstance(value, int):
            number = int.__int__(value)
            return number if abs(number) < 2**63 else {"int": hex(number)}
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, np.ndarray | np.generic):
            return self._array(np.array(value, subok=False), isinstance(value, np.generic), value)
        if isinstance(value, bytes | bytearray):
            return {"bytes": self._beside(bytes(value))}
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
        """A key of a dict or an item of a set: what is not plain and hashable counts by its text."""
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
        return {"array": [value.dtype.str, list(value.shape), self._beside(value.tobytes())]}

    def _beside(self, data: bytes) -> int:
        self.buffers.append(data)
        return len(self.buffers) - 1


def _foreign(value: Any) -> dict[str, Any]:
    name = type_name(value)
    if isinstance(value, np.ndarray):
        name = f"{name} of Python objects" if value.dtype.kind == "O" else f"{name} of {value.dtype}"
    return {"foreign": [name, text_of(value)]}


def _cut(data: bytes, begin: int, sizes: list[int]) -> list[memoryview]:
    pieces = []
    for size in sizes:
        pieces.append(memoryview(data)[begin : begin + size])
        begin += size
        if size < 0 or len(pieces[-1]) != size:
            raise ValueError("cut off")
    if begin != len(data):
        raise ValueError("more than was announced")
    return pieces


def _read(tree: Any, buffers: list[memoryview]) -> Any:
    if isinstance(tree, list):
        return [_read(item, buffers) for item in tree]
    if not isinstance(tree, dict):
        return tree
    ((kind, contents),) = tree.items()
    if kind == "array":
        dtype, shape, number = contents
        return _array(np.dtype(dtype), shape, buffers[number])
    if kind == "bytes":
        return bytes(buffers[contents])
    if kind == "dict":
        return {_read(key, buffers): _read(value, buffers) for key, value in contents}
    if kind == "foreign":
        return Foreign(*(writable(str(text)) for text in contents))
    if kind == "int":
        return int(contents, 16)
    if kind == "complex":
        return complex(*contents)
    return {"tuple": tuple, "set": set}[kind](_read(item, buffers) for item in contents)


def writable(text: str) -> str:
    """A text without what no file can hold: halves of characters (lone surrogates) become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _array(dtype: np.dtype[Any], shape: list[int], data: memoryview) -> np.ndarray[Any, Any]:
    if dtype.kind not in ARRAY_KINDS or len(data) != math.prod(shape) * dtype.itemsize:
        raise ValueError("an array of another size")
    return np.frombuffer(data, dtype).reshape(shape).copy() if data else np.zeros(shape, dtype)


def type_name(value: Any) -> str:
    """`Tensor`, `function`, `generator`: as a reader knows it."""
    return type.__dict__["__name__"].__get__(type(value))[:200]


def text_of(value: Any) -> str:
    """The beginning of repr(value), or nothing where that fails."""
    try:
        return str.__str__(repr(value))[:200]
    except Exception:  # a student's own __repr__: whatever it does, the type's name is enough
        return ""
