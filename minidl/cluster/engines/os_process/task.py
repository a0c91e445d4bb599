"""What a rank runs, as bytes in a file without a name, for ranks that are processes of their own."""

from __future__ import annotations

import contextlib
import linecache
import os
import pickle
from collections.abc import Iterator
from typing import Any

import cloudpickle

from minidl.cluster.engines.os_process.segments import anonymous_file
from minidl.cluster.engines.protocol import Program

PIECE_BYTES = 1 << 28


def packed(program: Program, args: tuple[Any, ...]) -> bytes:
    """What a rank runs, as bytes, with the caller's environment and the source lines of notebook cells."""
    try:
        pickled = cloudpickle.dumps((program, args), 5)
    except Exception as error:
        name = getattr(program, "__qualname__", repr(program))
        raise TypeError(
            f"the program {name} and its arguments must travel to other processes, but cannot be pickled: {error}; "
            "make open files, locks, connections and the like inside the program"
        ) from error
    cells = {name: entry for name, entry in linecache.cache.items() if len(entry) == 4 and entry[1] is None}
    return pickle.dumps((dict(os.environ), cells, pickled), 5)


def contents(descriptor: int, nbytes: int) -> bytearray:
    """The first `nbytes` bytes of a file, piece by piece: a system call reads or writes at most 2 GiB."""
    data = bytearray()
    while len(data) < nbytes:
        piece = os.pread(descriptor, min(nbytes - len(data), PIECE_BYTES), len(data))
        if not piece:
            raise EOFError(f"a file of {nbytes:,} bytes ends after {len(data):,}")
        data += piece
    return data


@contextlib.contextmanager
def file_of(data: bytes) -> Iterator[int]:
    """A descriptor of a file that holds the data, for as long as it is needed here."""
    descriptor = anonymous_file("minidl task")
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        yield descriptor
    finally:
        os.close(descriptor)
