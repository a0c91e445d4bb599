"""Makes the communicator calls of an answer's rank in the check's simulation.

A rank's process requests a call with plain data. The simulation's communicator of that rank makes it, below frames
with the student's names and lines (`student_frames.py`), so that errors show them. A request is not trusted: it may be
no call, or have senseless arguments. Then the error is sent to the rank's process.
"""

from __future__ import annotations

import builtins
import math
import pickle
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from course.judging.ranks.student_frames import Frame
from course.sandbox.exchange.plain_data import ARRAY_KINDS, DamagedError, Foreign
from minidl.cluster import ClusterError, Communicator, Mesh, Work
from minidl.kernels import counting

CALLS = frozenset({
    "all_gather", "all_reduce", "all_to_all", "barrier", "broadcast", "compute", "first_ranks", "gather", "irecv",
    "isend", "mark", "mesh", "now", "recv", "reduce", "reduce_scatter", "scatter", "send", "sendrecv", "shares",
    "split", "world_rank",
})  # fmt: skip

RECEIVING = frozenset({"recv", "sendrecv", "wait"})

MOST_SENT = 2**28
"""Bytes of all arguments of a rank's calls in a run; the check's memory holds messages that were not received."""

MESSAGE_BYTES = 500  # memory of the simulation for a message, in addition to its contents
MOST_SEGMENTS = 10_000


class RankCalls:
    """Makes the calls of one rank.

    Parameters
        comm     the communicator of this rank in the simulation
        most     bytes, at most, of an array that a message is written into
        counts   whether the work of the rank's kernels is charged
    """

    def __init__(self, comm: Communicator, most: int, counts: bool) -> None:
        self._left = MOST_SENT
        self._groups = [comm]
        self._meshes: list[Mesh[Communicator]] = []
        self._begun: list[tuple[Work, int]] = []
        self._ended: set[int] = set()
        self._most = most
        self._counts = counts

    @property
    def unfinished(self) -> int:
        """The number of calls that were begun, such as isend, and not known to have ended."""
        return len(self._begun) - len(self._ended)

    def charge(self, flops: Any, nbytes: Any) -> None:
        """Count the work of the rank's kernels since its last call; the simulation charges it."""
        counter = counting.active.get()
        if self._counts and counter is not None and is_amount(flops) and is_amount(nbytes):
            counter.add(flops, nbytes)

    def reply(self, group: int, method: str, arguments: list[Any], named: dict[str, Any], frames: list[Frame]) -> bytes:
        """Make a call, and return the pickled reply for its process. An error that ends the run is raised."""
        try:
            comm = self._groups[group]
            self._bound(arguments, named)
            call, given = self._call(comm, method, [self._argument(value) for value in arguments])
            value = called(frames, call, given, named)
            if method == "wait":
                comm = self._groups[self._begun[arguments[0]][1]]
            if method == "wait" or (method == "is_completed" and value):
                self._ended.add(arguments[0])
            source = comm.last_source if method in RECEIVING else None
            return pickle.dumps(("value", self._for_process(value, group), source), 5)
        except (ClusterError, DamagedError):
            raise
        except Exception as error:
            return pickle.dumps(("error", same_error(error)), 5)

    def _bound(self, arguments: list[Any], named: dict[str, Any]) -> None:
        """Refuse what would fill the check's memory: too many messages that nobody receives, labels, or segments."""
        self._left -= MESSAGE_BYTES + nbytes_of(arguments) + nbytes_of(named)
        if self._left < 0:
            raise ValueError(f"a rank sends at most {MOST_SENT / 2**20:g} MB in a check")
        if any(type(value) is int and value > MOST_SEGMENTS for value in named.values()):
            raise ValueError(f"an algorithm of a check has at most {MOST_SEGMENTS:,} segments")

    def _call(self, comm: Communicator, method: str, arguments: list[Any]) -> tuple[Callable[..., Any], list[Any]]:
        """The function to call, and its arguments."""
        if method in CALLS:
            return getattr(comm, method), arguments
        if method in ("wait", "is_completed"):
            return getattr(self._begun[arguments[0]][0], method), []
        if method == "group_of_mesh":
            return lambda mesh, axes: self._meshes[mesh][tuple(axes)], arguments
        if method == "bytes_sent":
            return lambda: comm.bytes_sent, []
        if method == "reduce_into":
            share = np.zeros(self._bounded(arguments[0]), np.uint8)
            return comm.reduce_into, [share, share]
        raise DamagedError(f"no call: {method!r}")

    def _argument(self, value: Any) -> Any:
        """An argument, decoded; `course/sandbox/ranks/encoding.py` encoded it."""
        if isinstance(value, list):  # an item for each rank; below, a pattern would compare an array with a word
            return value
        match value:
            case ("room", str(dtype), [*shape], bool(is_contiguous), bool(is_writeable)):
                return self._room(np.dtype(dtype), shape, is_contiguous, is_writeable)
            case ("array", np.ndarray() as array, bool(is_writeable), bool(is_masked)):
                array.flags.writeable = is_writeable
                return np.ma.masked_array(array) if is_masked else array
            case ("number", number):
                return np.asarray(number)[()]
            case (_, Foreign() as foreign):
                return type(foreign.type_name, (), {})()  # the call refuses it, with an error that names the type
            case ("plain", plain):
                return plain
            case Foreign():
                return type(value.type_name, (), {})()
        return value

    def _room(self, dtype: np.dtype[Any], shape: list[int], is_contiguous: bool, is_writeable: bool) -> Any:
        """An array of that type and layout, for a message to be written into."""
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
        """A result as it is sent to the rank's process: communicators, meshes and works by number."""
        if isinstance(value, Communicator):
            self._groups.append(value)
            ranks = [value.world_rank(rank) for rank in range(value.size)]
            return len(self._groups) - 1, ranks, value.rank
        if isinstance(value, Mesh):
            self._meshes.append(value)
            return len(self._meshes) - 1
        if isinstance(value, Work):
            self._begun.append((value, group))
            return len(self._begun) - 1
        return value


def called(frames: list[Frame], call: Callable[..., Any], arguments: list[Any], named: dict[str, Any]) -> Any:
    """Make a call below the student's frames, of which the first is the outermost."""
    for frame in reversed(frames):
        call, arguments, named = frame, [call, arguments, named], {}
    return call(*arguments, **named)


def nbytes_of(value: Any) -> int:
    """The bytes of an argument: of its arrays, and of all else, since the trace keeps texts such as labels."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    items: Iterable[Any] = ()
    if isinstance(value, dict):
        items = (*value, *value.values())
    elif isinstance(value, list | tuple | set | frozenset):
        items = value
    return sys.getsizeof(value) + sum(map(nbytes_of, items))


def is_amount(value: Any) -> bool:
    """Whether this is a possible number of operations or bytes."""
    return type(value) is int and 0 <= value < 1 << 62


def same_error(error: Exception) -> Exception:
    """The error that the rank's process raises: a built-in exception of the same type, else a RuntimeError."""
    kind = getattr(builtins, type(error).__name__, RuntimeError)
    return kind(*error.args) if kind is type(error) else RuntimeError(str(error))
