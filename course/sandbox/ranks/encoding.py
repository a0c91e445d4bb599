"""Arguments and results of communicator calls as plain data, in which every payload is an array."""

from __future__ import annotations

import math
import pickle
from typing import Any

import cloudpickle
import numpy as np

PLAIN_KINDS = "biufcSUmM"

PICKLED = (1,) * 9
"""The shape, except for the last axis, of an array with the bytes of a pickled object."""


def array_of(x: Any) -> np.ndarray[Any, Any]:
    """A payload as an array: itself if it is an array of numbers or text, else the bytes of its pickle."""
    if isinstance(x, np.ndarray) and type(x) in (np.ndarray, np.memmap) and x.dtype.kind in PLAIN_KINDS:
        is_plain = x.dtype.type not in (np.longdouble, np.clongdouble) and x.shape[:9] != PICKLED
        if is_plain:
            return np.asarray(x)
    try:
        data = pickle.dumps(x, 5)
    except (pickle.PicklingError, AttributeError, TypeError):
        data = cloudpickle.dumps(x, 5)  # a class or a function of the notebook's own
    return np.frombuffer(data, np.uint8).reshape(*PICKLED, len(data))


def object_of(value: Any) -> Any:
    """The payload that `array_of` encoded."""
    is_pickled = isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.shape[:-1] == PICKLED
    return pickle.loads(value.tobytes()) if is_pickled else value


def objects_of(values: Any) -> list[Any]:
    return [object_of(value) for value in values]


def items_of(x: Any, size: int) -> Any:
    """A list with one item for each rank, encoded; anything else is sent as it is, and refused by the check."""
    return [array_of(item) for item in x] if hasattr(x, "__len__") and len(x) == size else ("plain", x)


def room_of(out: Any, is_flat: bool = False) -> Any:
    """Type and layout of the array that a message will be written into."""
    if out is None:
        return None
    return ("room", out.dtype.str, list(out.shape), bool(is_flat or out.flags.c_contiguous), bool(out.flags.writeable))


def operand_of(x: Any) -> Any:
    """The argument of a reduction: an array with the properties for which it may be refused, or any other value."""
    if isinstance(x, np.ndarray):
        return ("array", np.asarray(x), bool(x.flags.writeable), isinstance(x, np.ma.MaskedArray))
    return ("number", np.asarray(x)) if isinstance(x, np.generic) else ("plain", x)


def received(value: Any, out: Any) -> Any:
    """The result of a receive."""
    return object_of(value) if out is None else written(value, out)


def written(value: Any, x: Any) -> Any:
    """The result of a call that works in place: the array x with the value in it; for a number, the value."""
    if not isinstance(x, np.ndarray):
        return value
    x[...] = value.reshape(x.shape) if math.prod(x.shape) == value.size else value
    return x
