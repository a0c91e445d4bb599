"""Payloads as bytes: an array is sent as its shape, dtype and memory; any other object as a pickle.

Pickle protocol 5 keeps large buffers, such as the arrays in a list, out of the pickle, so that they are copied once.
Arrays of records or objects are pickled too, because the name of their dtype does not describe them in full; so are
subclasses such as masked arrays. A memmap is sent as the array that it holds.
"""

from __future__ import annotations

import marshal
import pickle
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cloudpickle
import numpy as np
import numpy.typing as npt
from ml_dtypes import bfloat16

from minidl.cluster.phantom import Phantom

ARRAY, OBJECT = 0, 1
PLAIN_KINDS = frozenset("biufcSUmM")  # the kinds of dtypes that `dtype.str` describes in full
BFLOAT16 = np.dtype(bfloat16)  # of kind V, as records; its name describes it in full, once ml_dtypes is imported

Bytes = npt.NDArray[np.uint8]


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether an array of this type is sent as its memory."""
    return dtype.kind in PLAIN_KINDS or dtype == BFLOAT16


def encode(payload: Any) -> tuple[int, bytes, Sequence[Any], int]:
    """A payload as `(form, description, buffers, nbytes)`; the buffer of a contiguous array is its own memory."""
    if type(payload) is np.memmap:
        payload = np.asarray(payload)
    if type(payload) is np.ndarray and is_plain(payload.dtype):
        flat = payload if payload.flags.c_contiguous else np.ascontiguousarray(payload)
        dtype = payload.dtype.name if payload.dtype.kind == "V" else payload.dtype.str
        return ARRAY, _describe(dtype, payload.shape), [flat.reshape(-1).view(np.uint8)], payload.nbytes
    if type(payload) is Phantom:
        raise TypeError(f"{payload!r} has no contents: only a simulation can send it; here send an array")
    buffers: list[pickle.PickleBuffer] = []
    try:
        head = pickle.dumps(payload, 5, buffer_callback=buffers.append)
    except (pickle.PicklingError, AttributeError, TypeError):
        # It holds a class or function of the caller's script or notebook, which is sent by value.
        buffers.clear()
        head = cloudpickle.dumps(payload, 5, buffer_callback=buffers.append)
    raw = [head, *(buffer.raw() for buffer in buffers)]
    sizes = [len(buffer) for buffer in raw]
    return OBJECT, struct.pack(f"<{len(sizes)}Q", *sizes), raw, sum(sizes)


@dataclass(frozen=True)
class Refusal:
    """Takes the place of a payload that does not fit what its receive asked for."""

    error: Exception


def decode(form: int, description: bytes, body: Bytes, out: npt.NDArray[Any] | None) -> Any:
    """The payload, in memory of its own; an array is written into `out` if one is given.

    Returns a Refusal instead of raising: the receive is to raise the error, not the caller.
    """
    try:
        if form == OBJECT:
            sizes = struct.unpack(f"<{len(description) // 8}Q", description)
            ends = np.cumsum(sizes)
            return unpickle([bytearray(body[end - size : end]) for end, size in zip(ends, sizes, strict=True)], out)
        dtype, shape = _shape(description)
        if out is None:
            out = np.empty(shape, dtype)
        else:
            _check_fit(out, dtype, shape, body.size)
        if body.size:
            out.reshape(-1).view(np.uint8)[:] = body
        return out
    except Exception as error:
        return Refusal(error)


def unpickle(buffers: Sequence[Any], out: npt.NDArray[Any] | None) -> Any:
    """The object of a pickle and its buffers; an array is written into `out` if that is given."""
    received = pickle.loads(buffers[0], buffers=buffers[1:])
    if out is None:
        return received
    if not isinstance(received, np.ndarray):
        raise TypeError(
            f"a receive was given an array, but the message is {_a(type(received).__name__)}: give it none (None, say)"
        )
    _check_fit(out, received.dtype, received.shape, received.nbytes)
    out[...] = received.reshape(out.shape)
    return out


def _check_fit(out: npt.NDArray[Any], dtype: np.dtype[Any], shape: tuple[int, ...], nbytes: int) -> None:
    if out.dtype != dtype or out.nbytes != nbytes or not out.flags.c_contiguous or not out.flags.writeable:
        flaws = ("" if out.flags.writeable else "read-only ") + ("" if out.flags.c_contiguous else "non-contiguous ")
        raise ValueError(
            f"a receive was given {_a(f'{flaws}{out.dtype} array')} of shape {out.shape}, but the message is "
            f"{dtype} of shape {shape}: give a contiguous array like that, which can be written"
        )


def _a(noun: str) -> str:
    return f"{'an' if noun[:1] in 'aeio' else 'a'} {noun}"


@lru_cache(maxsize=1024)
def _describe(dtype: str, shape: tuple[int, ...]) -> bytes:
    return marshal.dumps((dtype, shape))


@lru_cache(maxsize=1024)
def _shape(description: bytes) -> tuple[np.dtype[Any], tuple[int, ...]]:
    dtype, shape = marshal.loads(description)
    return np.dtype(dtype), shape
