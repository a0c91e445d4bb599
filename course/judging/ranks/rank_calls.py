"""The communicator calls of an answer's rank, made in its place in the check's simulation.

A rank's process asks for a call by plain data; the check's own communicator of that rank makes it, below frames that
have the names and the lines of the student's (`student_frames.py`), so that errors name them. What is asked for is not
to be trusted: it can be no call, or one with senseless arguments, and then the rank hears the error.
"""

from __future__ import annotations

import builtins
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from course.judging.ranks.student_frames import Frame
from course.sandbox.exchange.plain_data import ARRAY_KINDS, DamagedError, Foreign
from minidl.cluster import ClusterError, Communicator, Work
from minidl.kernels import counting

CALLS = frozenset({
    "all_gather", "all_reduce", "all_to_all", "barrier", "broadcast", "compute", "gather", "irecv", "isend", "mark",
    "now", "recv", "reduce", "reduce_scatter", "scatter", "send", "sendrecv", "shares", "split", "world_rank",
})  # fmt: skip

RECEIVING = frozenset({"recv", "sendrecv", "wait"})

MOST_SENT = 2**28
"""Bytes of all messages of a rank in a run: the check holds those that nobody has received."""

MESSAGE_BYTES = 500  # that the simulation needs for a message, besides its contents
MOST_SEGMENTS = 10_000


class RankCalls:
    """Answers the calls of one rank. most: bytes of an array that a message is to be written into."""

    def __init__(self, comm: Communicator, most: int, counts: bool) -> None:
        self._left = MOST_SENT
        self._groups = [comm]
        self._begun: list[tuple[Work, int]] = []
        self._most = most
        self._counts = counts

    def charge(self, flops: Any, nbytes: Any) -> None:
        """Count what the rank's kernels have done since its last call: the simulation charges it."""
        counter = counting.active.get()
        if self._counts and counter is not None and is_amount(flops) and is_amount(nbytes):
            counter.add(flops, nbytes)

    def reply(self, group: int, method: str, arguments: list[Any], named: dict[str, Any], frames: list[Frame]) -> bytes:
        """Make a call, and return what its process is told of it, pickled. What ends the run is raised."""
        try:
            comm = self._groups[group]
            self._bound(arguments, named)
            call, given = self._call(comm, method, [self._argument(value) for value in arguments])
            value = called(frames, call, given, named)
            if method == "wait":
                comm = self._groups[self._begun[arguments[0]][1]]
            source = comm.last_source if method in RECEIVING else None
            return pickle.dumps(("value", self._for_process(value, group), source), 5)
        except (ClusterError, DamagedError):
            raise
        except Exception as error:
            return pickle.dumps(("error", same_error(error)), 5)

    def _bound(self, arguments: list[Any], named: dict[str, Any]) -> None:
        """Refuse what would fill the memory of the check: endless messages that nobody receives, endless segments."""
        self._left -= MESSAGE_BYTES + nbytes_of(arguments)
        if self._left < 0:
            raise ValueError(f"a rank sends at most {MOST_SENT / 2**20:g} MB in a check")
        if any(type(value) is int and value > MOST_SEGMENTS for value in named.values()):
            raise ValueError(f"an algorithm of a check has at most {MOST_SEGMENTS:,} segments")

    def _call(self, comm: Communicator, method: str, arguments: list[Any]) -> tuple[Callable[..., Any], list[Any]]:
        """The function to call, and with what."""
        if method in CALLS:
            return getattr(comm, method), arguments
        if method in ("wait", "is_completed"):
            return getattr(self._begun[arguments[0]][0], method), []
        if method == "bytes_sent":
            return lambda: comm.bytes_sent, []
        if method == "reduce_into":
            share = np.zeros(self._bounded(arguments[0]), np.uint8)
            return comm.reduce_into, [share, share]
        raise DamagedError(f"no call: {method!r}")

    def _argument(self, value: Any) -> Any:
        """An argument, as `course/sandbox/ranks/communicator.py` has packed it."""
        match value:
            case ("room", str(dtype), [*shape], bool(is_contiguous), bool(is_writeable)):
                return self._room(np.dtype(dtype), shape, is_contiguous, is_writeable)
            case ("array", np.ndarray() as array, bool(is_writeable), bool(is_masked)):
                array.flags.writeable = is_writeable
                return np.ma.masked_array(array) if is_masked else array
            case ("number", number):
                return np.asarray(number)[()]
            case (_, Foreign() as foreign):
                return type(foreign.type_name, (), {})()  # refused by its type, which the error is to name
            case ("plain", plain):
                return plain
            case Foreign():
                return type(value.type_name, (), {})()
        return value

    def _room(self, dtype: np.dtype[Any], shape: list[int], is_contiguous: bool, is_writeable: bool) -> Any:
        """An array of that layout, for a message to be written into."""
        if dtype.kind not in ARRAY_KINDS:
            raise TypeError(f"no message is written into an array of {dtype}")
        self._bounded(dtype.itemsize * math.prod(shape))
        array = np.zeros(shape, dtype) if is_contiguous else np.zeros((*shape, 2), dtype)[..., 0]
        array.flags.writeable = is_writeable
        return array

    def _bounded(self, nbytes: int) -> int:
        if not 0 <= nbytes <= self._most:
            raise ValueError(f"an array of {nbytes:,} bytes; the check takes at most {self._most:,}")
        return nbytes

    def _for_process(self, value: Any, group: int) -> Any:
        """What the rank's process is given of a result: a group or an operation by its number."""
        if isinstance(value, Communicator):
            self._groups.append(value)
            ranks = [value.world_rank(rank) for rank in range(value.size)]
            return len(self._groups) - 1, ranks, value.rank
        if isinstance(value, Work):
            self._begun.append((value, group))
            return len(self._begun) - 1
        return value


def called(frames: list[Frame], call: Callable[..., Any], arguments: list[Any], named: dict[str, Any]) -> Any:
    """Make a call as if the student's frames, the outermost first, had led to it."""
    for frame in reversed(frames):
        call, arguments, named = frame, [call, arguments, named], {}
    return call(*arguments, **named)


def nbytes_of(value: Any) -> int:
    """The bytes of the arrays in an argument."""
    if isinstance(value, (list, tuple)):
        return sum(map(nbytes_of, value))
    return value.nbytes if isinstance(value, np.ndarray) else 0


def is_amount(value: Any) -> bool:
    """Whether this can be an amount of work."""
    return type(value) is int and 0 <= value < 1 << 62


def same_error(error: Exception) -> Exception:
    """The error as the rank's process is to raise it."""
    kind = getattr(builtins, type(error).__name__, RuntimeError)
    return kind(*error.args) if kind is type(error) else RuntimeError(str(error))
