"""What a rank's process gets to run: the program, the caller's environment, and the source of notebook cells."""

from __future__ import annotations

import linecache
import os
import pickle
from typing import Any

from minidl.cluster.engines.pickled import pickled_program
from minidl.cluster.engines.protocol import Program


def packed(program: Program, args: tuple[Any, ...]) -> bytes:
    """The task as bytes, the same for all ranks."""
    pickled = pickled_program(program, args)
    cells = {name: entry for name, entry in linecache.cache.items() if len(entry) == 4 and entry[1] is None}
    return pickle.dumps((dict(os.environ), cells, pickled), 5)


def unpack(task: bytearray) -> bytes:
    """Give this process the caller's environment and the cells' source lines; returns the pickled program."""
    pickled: bytes
    environment, cells, pickled = pickle.loads(task)
    os.environ.clear()
    os.environ.update(environment)
    linecache.cache.update(cells)
    return pickled
