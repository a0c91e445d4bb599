"""Pickles the program for the ranks and its results for the caller, by cloudpickle."""

from __future__ import annotations

import linecache
import os
import pickle
from typing import Any

import cloudpickle

from minidl.cluster.diagnosis.errors import RankFailed
from minidl.cluster.engines.protocol import Program


def pickled_program(program: Program, args: tuple[Any, ...]) -> bytes:
    """The program and its arguments as bytes; TypeError when they cannot be pickled."""
    try:
        return cloudpickle.dumps((program, args), 5)
    except Exception as error:
        name = getattr(program, "__qualname__", repr(program))
        raise TypeError(
            f"the program {name} and its arguments must travel to other processes, but cannot be pickled: {error}; "
            "make open files, locks, connections and the like inside the program"
        ) from error


def pickled_result(value: Any, rank: int) -> bytes:
    """The result of the program on this rank, as bytes; TypeError when it cannot be pickled."""
    try:
        return cloudpickle.dumps(value, 5)
    except Exception as error:
        raise TypeError(
            f"the result of rank {rank}, a {type(value).__name__}, cannot be sent to the caller: {error}; "
            "return arrays, numbers, or what can be pickled"
        ) from error


def loaded_result(rank: int, value: bytes) -> Any:
    """The result of the program on that rank, from its bytes; RankFailed when it cannot be unpickled."""
    try:
        return cloudpickle.loads(value)
    except (Exception, SystemExit) as error:
        raise RankFailed(f"the result of rank {rank} cannot be read here: {error}", rank=rank, cause=error) from error


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
