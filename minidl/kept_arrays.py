"""kept_bytes: the memory that a forward pass keeps for backward, counted from arrays that are alive; when to look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np

from minidl.kernels import Array, owner
from minidl.tape import Node

Look = Callable[[str, Sequence[Any]], None]

memory_watches: ContextVar[tuple[Look, ...]] = ContextVar("minidl_memory_watches", default=())
"""What `look_at_memory` calls."""


def look_at_memory(moment: str, outputs: Sequence[Any] = ()) -> None:
    """Called where a rank's memory may be at its peak, such as in backward when a call has been repeated.

    outputs: tensors, of which a graph is there that no strategy holds.
    """
    for look in memory_watches.get():
        look(moment, outputs)


def kept_bytes(outputs: Iterable[Any], left_out: Iterable[Any]) -> int:
    """The bytes of the outputs, and of all arrays that the graphs above them keep for backward.

    Each array counts once, and a view as the array whose memory it shows.

    Parameters
        outputs   tensors of a forward pass; or arrays, and functions that hold arrays
        left_out  arrays and tensors whose memory does not count, such as the input and the parameters

    >>> import numpy as np
    >>> from minidl import nn
    >>> layer, x = nn.Linear(4, 3), np.ones((2, 4), np.float32)
    >>> kept_bytes([layer(x)], [x, *layer.parameters()])
    24
    """
    return sum(array.nbytes for array in KeptArrays(left_out).new(outputs))


class KeptArrays:
    """Finds the arrays that graphs keep for backward, each once over all calls of `new`."""

    def __init__(self, left_out: Iterable[Any]) -> None:
        self._found: dict[int, Array] = {
            id(whole): whole for whole in (owner(array) for array in map(_array, left_out) if is_array(array))
        }
        self._seen: dict[int, Any] = {}  # keeps the objects alive, since the id of a freed one may be reused

    def new(self, outputs: Iterable[Any]) -> list[Array]:
        """The arrays that the outputs and the graphs above them keep, without those of earlier calls."""
        before = len(self._found)
        rest: list[Any] = list(outputs)
        while rest:
            value = rest.pop()
            if id(value) in self._seen:
                continue
            self._seen[id(value)] = value
            if is_array(value):
                whole = owner(value)
                self._found[id(whole)] = whole
            else:
                rest += referred_to(value)
        return list(self._found.values())[before:]


def referred_to(value: Any) -> Iterable[Any]:
    """What backward reaches from here through functions and containers.

    Other objects are not followed: a communicator leads to the whole program, and holds nothing for backward.
    """
    if isinstance(value, Node):
        if value._node is not None:
            return (value._data, value._node)
        return (value._data,) if value._vjp is None else (value._vjp, *value._parents)
    if isinstance(value, FunctionType):
        return (*(value.__closure__ or ()), value.__defaults__, value.__kwdefaults__)
    if isinstance(value, CellType):
        return () if value == CellType() else (value.cell_contents,)
    if isinstance(value, MethodType):
        return (value.__self__,)
    if isinstance(value, partial):
        return (value.func, value.args, value.keywords)
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, (tuple, list, set, frozenset)):
        return value
    return ()


def _array(value: Any) -> Any:
    return value._data if isinstance(value, Node) else value


def is_array(value: Any) -> bool:
    """Whether it is an array of numpy or CuPy, not a scalar."""
    return hasattr(value, "nbytes") and hasattr(value, "base") and not isinstance(value, np.generic)
