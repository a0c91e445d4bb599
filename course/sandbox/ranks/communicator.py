"""The communicator of an answer that runs on several ranks, each in a process of its own.

It has the methods of `minidl.cluster.Communicator`. Each call is a request to the check's process. There the
simulation's communicator of this rank makes it, and messages, bytes and seconds are counted. An answer that changes
this file's code changes its own requests only.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from course.sandbox.ranks.encoding import (
    array_of,
    items_of,
    object_of,
    objects_of,
    operand_of,
    received,
    room_of,
    written,
)

ANY = -1


class RankConnection(Protocol):
    """A rank's connection to the check."""

    def call(self, group: int, method: str, arguments: list[Any], named: dict[str, Any]) -> Any:
        """The result of a method of this rank's communicator number `group` in the check; raises its errors."""

    def place(self) -> str:
        """The student's line that is being executed."""


class Communicator:
    """Messages and collectives among `size` ranks, of which this is number `rank`: see minidl.cluster.Communicator.

    It lacks `background`, `until`, `shared_array`, and messages without contents (Phantom), which no check needs. An
    error that ends the run, such as a deadlock or ranks in different collectives, ends this process and cannot be
    caught.
    """

    def __init__(self, line: RankConnection, group: int, ranks: Sequence[int], rank: int, state: RankState) -> None:
        self.rank = rank
        self.size = len(ranks)
        self.last_source = ANY
        self.rng = state.rng
        self._line = line
        self._group = group
        self._ranks = tuple(ranks)
        self._state = state

    def __repr__(self) -> str:
        return f"<Communicator: rank {self.rank} of {self.size}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a communicator belongs to its rank: it cannot be sent or returned")

    # Messages

    def send(self, x: Any, dst: int, tag: int = 0) -> None:
        self._state.check("send", x, None)
        self._call("send", [array_of(x), dst, tag])

    def recv(self, src: int | Collection[int], tag: int = 0, out: Any = None) -> Any:
        self._state.check("recv", None, out)
        return received(self._call("recv", [src, tag, room_of(out)]), out)

    def sendrecv(self, x: Any, dst: int, src: int, tag: int = 0, out: Any = None) -> Any:
        self._state.check("sendrecv", x, out)
        return received(self._call("sendrecv", [array_of(x), dst, src, tag, room_of(out)]), out)

    def isend(self, x: Any, dst: int, tag: int = 0) -> Work:
        self._state.check("isend", x, None)
        return self._begun("isend", self._call("isend", [array_of(x), dst, tag]), lambda value: None)

    def irecv(self, src: int, tag: int = 0, out: Any = None) -> Work:
        self._state.check("irecv", None, out)
        number = self._call("irecv", [src, tag, room_of(out)])
        return self._begun("irecv", number, lambda value: received(value, out), writes=out)

    def world_rank(self, rank: int) -> int:
        return int(self._call("world_rank", [rank]))

    # Collectives

    def broadcast(self, x: Any, src: int = 0, async_op: bool = False, label: str | None = None) -> Any:
        is_source = src == self.rank
        reads, writes = (x, None) if is_source else (None, x)

        def finish(value: Any) -> Any:
            if is_source:
                return x
            return written(value, x) if isinstance(x, np.ndarray) else object_of(value)

        given = array_of(x) if is_source else room_of(x, is_flat=True) if isinstance(x, np.ndarray) else None
        return self._collective("broadcast", [given, src], {"label": label}, async_op, finish, reads, writes)

    def reduce(self, x: Any, dst: int = 0, op: str = "sum", async_op: bool = False, label: str | None = None) -> Any:
        reads, writes = (None, x) if dst == self.rank else (x, None)

        def finish(value: Any) -> Any:
            return None if value is None else written(value, x)

        named = {"op": op, "label": label}
        return self._collective("reduce", [operand_of(x), dst], named, async_op, finish, reads, writes)

    def all_reduce(
        self,
        x: Any,
        op: str = "sum",
        algorithm: str = "auto",
        async_op: bool = False,
        label: str | None = None,
        **options: Any,
    ) -> Any:
        named = {"op": op, "algorithm": algorithm, "label": label, **options}
        return self._collective(
            "all_reduce", [operand_of(x)], named, async_op, lambda value: written(value, x), writes=x
        )

    def reduce_scatter(self, x: Any, op: str = "sum", async_op: bool = False, label: str | None = None) -> Any:
        named = {"op": op, "label": label}
        return self._collective("reduce_scatter", [operand_of(x)], named, async_op, lambda value: value, reads=x)

    def all_gather(self, x: Any, async_op: bool = False, label: str | None = None) -> Any:
        return self._collective("all_gather", [array_of(x)], {"label": label}, async_op, objects_of, reads=x)

    def gather(self, x: Any, dst: int = 0, async_op: bool = False, label: str | None = None) -> Any:
        def finish(value: Any) -> Any:
            return None if value is None else objects_of(value)

        return self._collective("gather", [array_of(x), dst], {"label": label}, async_op, finish, reads=x)

    def scatter(self, x: Any, src: int = 0, async_op: bool = False, label: str | None = None) -> Any:
        items = items_of(x, self.size) if src == self.rank else None
        return self._collective("scatter", [items, src], {"label": label}, async_op, object_of, reads=x)

    def all_to_all(self, x: Sequence[Any], async_op: bool = False, label: str | None = None) -> Any:
        items = items_of(x, self.size)
        return self._collective("all_to_all", [items], {"label": label}, async_op, objects_of, reads=x)

    def barrier(self, async_op: bool = False, label: str | None = None) -> Any:
        return self._collective("barrier", [], {"label": label}, async_op, lambda value: value)

    # Groups

    def split(self, color: int | None, key: int = 0) -> Communicator | None:
        return self._made("split", [color, key])

    def mesh(self, shape: Sequence[int], names: Sequence[str]) -> Any:
        from minidl.cluster.mesh import Mesh

        return Mesh(self, shape, names)

    def _groups_of(self, mesh: Any) -> Callable[[tuple[str, ...]], Communicator]:
        number = self._call("mesh", [list(mesh.shape), ("plain", list(mesh.names))])
        return lambda axes: self._made("group_of_mesh", [number, ("plain", list(axes))])

    def first_ranks(self, count: int) -> Communicator:
        return self._made("first_ranks", [count])

    # Work and time

    def compute(self, flops: float = 0.0, seconds: float = 0.0, nbytes: float = 0.0, label: str = "") -> None:
        self._call("compute", [flops, seconds, nbytes, label])

    def reduce_into(self, a: Any, b: Any, op: str = "sum") -> None:
        from minidl.cluster.channel import REDUCE

        REDUCE[op](a, b, out=a)
        self._call("reduce_into", [a.nbytes])

    def now(self) -> float:
        return float(self._call("now", []))

    @property
    def network(self) -> Any:
        return pickle.loads(self._state.network)

    def mark(self, label: str) -> None:
        self._call("mark", [label])

    def shares(self) -> Any:
        return self._call("shares", [])

    @property
    def bytes_sent(self) -> int:
        return int(self._call("bytes_sent", []))

    def tell(self, obj: Any) -> None:
        """Does nothing: a check has no listener."""

    def background(self, *_: Any) -> NoReturn:
        raise RuntimeError("comm.background cannot be used in a check: irecv and async_op=True can")

    def until(self, *_: Any) -> NoReturn:
        raise RuntimeError("comm.until cannot be used in a check")

    def shared_array(self, *_: Any, **__: Any) -> NoReturn:
        raise RuntimeError("comm.shared_array cannot be used in a check: its ranks share no memory, only messages")

    # Below the surface

    def _call(self, method: str, arguments: list[Any], named: dict[str, Any] | None = None) -> Any:
        value, source = self._line.call(self._group, method, arguments, named or {})
        if source is not None:
            self.last_source = source
        return value

    def _made(self, method: str, arguments: list[Any]) -> Any:
        """The communicator, or None, that a method of the check's communicator returns."""
        group = self._call(method, arguments)
        return None if group is None else Communicator(self._line, *group, self._state)

    def _begun(
        self, operation: str, number: int, finish: Callable[[Any], Any], reads: Any = None, writes: Any = None
    ) -> Work:
        work = Work(self, operation, number, finish)
        if reads is not None or writes is not None:
            self._state.begin(work, operation, self._line.place(), reads, writes)
        return work

    def _collective(
        self,
        operation: str,
        arguments: list[Any],
        named: dict[str, Any],
        async_op: bool,
        finish: Callable[[Any], Any],
        reads: Any = None,
        writes: Any = None,
    ) -> Any:
        self._state.check(operation, reads, writes)
        value = self._call(operation, arguments, {**named, "async_op": bool(async_op)})
        return self._begun(operation, value, finish, reads, writes) if async_op else finish(value)


class Work:
    """An operation in progress: `isend`, `irecv`, or a collective with `async_op=True`; see minidl.cluster.Work."""

    def __init__(self, comm: Communicator, operation: str, number: int, finish: Callable[[Any], Any]) -> None:
        self._comm = comm
        self._operation = operation
        self._number = number
        self._finish = finish
        self._is_over = False
        self._value: Any = None

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"what {self._operation} returns cannot be sent or returned: its wait() returns what came")

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"what {self._operation} returns is no array: its wait() returns what came")

    __array_ufunc__ = __array__

    def is_completed(self) -> bool:
        return bool(self._comm._call("is_completed", [self._number]))

    def wait(self) -> Any:
        if not self._is_over:
            self._comm._state.end(self)
            self._value = self._finish(self._comm._call("wait", [self._number]))
            self._is_over = True
        return self._value


class RankState:
    """What all communicators of one rank share: the random generator, the network, the arrays in flight."""

    def __init__(self, rng: np.random.Generator, network: bytes) -> None:
        self.rng = rng
        self.network = network
        self._in_flight: Any = None

    def check(self, operation: str, reads: Any, writes: Any) -> None:
        """Raise RuntimeError if the operation would use an array that is in use by an operation in flight."""
        if self._in_flight is not None:
            self._in_flight.check(operation, reads, writes)

    def begin(self, key: Any, operation: str, place: str, reads: Any, writes: Any) -> None:
        """Note that an operation uses these arrays until `end`."""
        if self._in_flight is None:
            from minidl.cluster.in_flight import InFlight

            self._in_flight = InFlight()
        self._in_flight.begin(key, operation, place, reads, writes)

    def end(self, key: Any) -> None:
        """Note that the program has waited for the operation."""
        if self._in_flight is not None:
            self._in_flight.end(key)
