"""Arrays in memory that all ranks of a run share: one anonymous file, of which every rank maps the arrays it uses.

The file begins with a directory of names and offsets. The first rank that asks for a name enters it there, under a file
lock that the kernel releases if the rank dies. Pages that were never written take no memory.
"""

from __future__ import annotations

import fcntl
import marshal
import math
import mmap
import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from minidl.cluster.diagnosis.errors import CommTimeout
from minidl.cluster.engines.protocol import Array

DIRECTORY_BYTES = 1 << 20
ALIGNMENT = mmap.ALLOCATIONGRANULARITY
LENGTH = struct.Struct("<Q")  # of the directory's entries in bytes; then of each entry
RETRY_SECONDS = 0.001

DirectoryEntry = tuple[str, str, tuple[int, ...], int]  # name, dtype, shape, offset of the data in the file


class SharedArrays:
    """The arrays in the file `descriptor`, which all ranks hold; `timeout` is for the directory's lock, in seconds."""

    def __init__(self, descriptor: int, timeout: float) -> None:
        self._descriptor = descriptor
        self._timeout = timeout
        self._mutex = threading.Lock()  # the file lock excludes other processes, but not other threads
        self._mapped: dict[str, Array] = {}

    def get(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """The array of that name; initially zeros. ValueError if it exists with another shape or dtype."""
        if dtype.hasobject:
            raise TypeError(f"an array of dtype {dtype} holds references, which mean nothing in another process")
        if any(length < 0 for length in shape):
            raise ValueError(f"a shared array cannot have the shape {shape}: lengths are at least 0")
        with self._mutex:
            array = self._mapped.get(name)
            if array is None:
                array = self._mapped[name] = self._map(name, shape, dtype)
        check_equal(array, name, shape, dtype)
        return array

    def _map(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        with self._locked():
            entry, end = self._find(name)
            if entry is None:
                entry = self._enter((name, dtype.str, shape, end))
        _, dtype_name, shape, offset = entry
        dtype = np.dtype(dtype_name)
        memory = mmap.mmap(self._descriptor, max(1, math.prod(shape) * dtype.itemsize), offset=offset)
        return np.frombuffer(memory, dtype, math.prod(shape)).reshape(shape)

    def _find(self, name: str) -> tuple[DirectoryEntry | None, int]:
        """The entry of that name, if there is one, and the offset at which the next array can begin."""
        end = DIRECTORY_BYTES
        for entry in self._entries():
            _, dtype, shape, offset = entry
            if entry[0] == name:
                return entry, end
            end = offset + _whole_pages(math.prod(shape) * np.dtype(dtype).itemsize)
        return None, end

    def _entries(self) -> Iterator[DirectoryEntry]:
        data = os.pread(self._descriptor, self._used(), LENGTH.size)
        position = 0
        while position < len(data):
            (length,) = LENGTH.unpack_from(data, position)
            position += LENGTH.size
            yield marshal.loads(data[position : position + length])
            position += length

    def _enter(self, entry: DirectoryEntry) -> DirectoryEntry:
        name, dtype, shape, offset = entry
        text = marshal.dumps(entry)
        used = self._used()
        after = used + LENGTH.size + len(text)
        if LENGTH.size + after > DIRECTORY_BYTES:
            raise MemoryError(f"there is no room for the name of one more shared array, {name[:40]!r}: use fewer")
        os.ftruncate(self._descriptor, offset + _whole_pages(math.prod(shape) * np.dtype(dtype).itemsize))
        os.pwrite(self._descriptor, LENGTH.pack(len(text)) + text, LENGTH.size + used)
        os.pwrite(self._descriptor, LENGTH.pack(after), 0)  # last: if the rank dies before, nothing is entered
        return entry

    def _used(self) -> int:
        length = os.pread(self._descriptor, LENGTH.size, 0)
        return int(LENGTH.unpack(length)[0]) if length else 0

    @contextmanager
    def _locked(self) -> Iterator[None]:
        end = time.monotonic() + self._timeout
        while True:
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise CommTimeout(
                        f"another rank has held the directory of shared arrays for {self._timeout:g} s: it was stopped"
                    ) from None
                time.sleep(RETRY_SECONDS)
        try:
            yield
        finally:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN)


def _whole_pages(nbytes: int) -> int:
    return max(1, -(-nbytes // ALIGNMENT)) * ALIGNMENT


def check_equal(array: Array, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise ValueError unless the shared array has the shape and dtype that a rank asks for."""
    if (array.shape, array.dtype) != (shape, dtype):
        raise ValueError(
            f"the shared array {name!r} has shape {array.shape} and dtype {array.dtype}, but this rank asks for "
            f"shape {shape} and dtype {dtype}: ask for the same on all ranks, or choose another name"
        )
