"""A key-value store of arrays, divided among servers: clients get, put, and add to them, or compute where they lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import numpy as np

from minidl.arguments import whole_number
from minidl.cluster.collectives.partition import split
from minidl.cluster.comm import Communicator
from minidl.kernels import Array
from minidl.parallel.servers.server_loop import ServerLoop, ask, leave, locked
from minidl.parallel.servers.vectors import Vectors


class Store:
    """A store of arrays on the last `servers` ranks of a run; the ranks before them are its clients.

        put(key, x)    the array under this key is x
        get(key)       a copy of it
        add(key, x)    the array under this key becomes array + x
        dot, axpy, scale, copy    of `Vectors`: each server computes with its shards, and only scalars travel

    Every array is divided into `servers` shards of about equal length, one on each server, so that each server carries
    an equal share of the traffic. A server serves one request at a time: on a shard a request is atomic, and additions
    commute, so any order of them gives the same sum (of floats up to rounding). Over several servers a request is not
    atomic: a reader may find one shard from before another client's request and the next from after it. Within
    `with store.lock():` a client has the store to itself if the others take the lock too.

    A request costs a message to each server and one back: the bytes of the array, and about 150 more per message.
    Servers call `serve`; clients leave the store with `close()`, or use it as a context manager.

    Raises
        KeyError     for a key under which there is nothing
        ValueError   for an array of another shape, or of a dtype that cannot be added; without a server or a client

    >>> import numpy as np
    >>> from minidl import cluster
    >>> def program(comm):
    ...     store = Store(comm, servers=2)
    ...     if store.is_server:
    ...         return store.serve()
    ...     with store:
    ...         if comm.rank == 0:
    ...             store.put("w", np.zeros(3))
    ...             comm.send("it is there", 1)
    ...         else:
    ...             comm.recv(0)
    ...             store.add("w", np.array([1.0, 2.0, 3.0]))
    ...             return store.get("w").tolist()
    >>> cluster.launch(program, nodes=4, on="simulation").results
    [None, [1.0, 2.0, 3.0], None, None]

    References
        Li et al., Scaling distributed machine learning with the parameter server (OSDI 2014), section 3; Power and Li,
        Piccolo (OSDI 2010), for updates that commute. Dean et al., Large scale distributed deep networks (NIPS 2012),
        section 4.2, for computing where the shards lie.
    """

    def __init__(self, comm: Communicator, servers: int = 1) -> None:
        servers = whole_number("Store: servers", servers)
        if not 1 <= servers < comm.size:
            raise ValueError(f"a store on {comm.size} ranks needs 1 to {comm.size - 1} servers, got {servers}")
        self.comm = comm
        self.clients = range(comm.size - servers)
        self.servers = range(comm.size - servers, comm.size)
        self.is_server = comm.rank in self.servers

    # Clients

    def put(self, key: str, x: Array) -> None:
        """Keep a copy of x under this key, in place of what was there before."""
        self._ask("put", key, np.asarray(x))

    def get(self, key: str) -> Array:
        """A copy of the array under this key."""
        answers = self._ask("get", key)
        shape, _ = answers[0]
        return np.concatenate([shard for _, shard in answers]).reshape(shape)

    def add(self, key: str, x: Array, turn: int | None = None) -> None:
        """Add x to the array under this key, which keeps its dtype.

        turn: additions with a turn are made in the order 0, 1, 2, ... of their turns, each once: one that is early
        waits on the server, and a repeated one is ignored. So the sum has the same bits in every order of arrival.
        """
        self._ask("add", key, np.asarray(x), turn)

    def dot(self, x: str, y: str) -> float:
        """The sum of the products of the elements of two arrays, in float64."""
        return float(sum(self._ask("dot", x, y)))

    def axpy(self, alpha: float, x: str, y: str) -> None:
        """y += alpha x."""
        self._ask("axpy", alpha, x, y)

    def scale(self, alpha: float, x: str) -> None:
        """x *= alpha."""
        self._ask("scale", alpha, x)

    def copy(self, x: str, y: str) -> None:
        """The array under y becomes a copy of that under x."""
        self._ask("copy", x, y)

    def note(self, *values: Any) -> None:
        """Call `noted` of `serve` with these values on every server."""
        self._ask("note", *values)

    def lock(self) -> AbstractContextManager[None]:
        """Keep the other clients out of their `with store.lock():` blocks during this one."""
        return locked(self.comm, self.servers[0])

    def close(self) -> None:
        """Ask no more; the servers return when all clients have left or failed."""
        leave(self.comm, self.servers)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None:  # a client that fails does not leave
            self.close()

    def _ask(self, operation: str, *arguments: Any) -> Sequence[Any]:
        """The answers of the servers, each of which gets its shard of an array."""
        cut = [[(x.shape, s) for s in split(x.reshape(-1), len(self.servers))] if isinstance(x, np.ndarray) else None
               for x in arguments]  # fmt: skip
        requests = [
            (operation, *(x if shards is None else shards[number] for x, shards in zip(arguments, cut, strict=True)))
            for number in range(len(self.servers))
        ]
        answers = ask(self.comm, self.servers, requests)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    # Servers

    def serve(self, arrays: Mapping[str, Array] | None = None, noted: Callable[..., None] | None = None) -> None:
        """Serve the clients until all have left or failed.

        Parameters
            arrays  what the store has from the start, the same on all servers, each of which keeps its shards
            noted   called with this server's shards by key, and with the values of a client's `note`
        """
        server = self.servers.index(self.comm.rank)
        held = Shards(noted)
        for key, x in (arrays or {}).items():
            held.put(key, (x.shape, split(x.reshape(-1), len(self.servers))[server].copy()))
        for client, request in (loop := ServerLoop(self.comm, self.clients)):
            if request is not None:
                loop.answer(client, held.answer(*request))


class Shards(Vectors):
    """What one server of a store holds, and how it answers requests."""

    def __init__(self, noted: Callable[..., None] | None) -> None:
        super().__init__({})
        self._whole: dict[str, tuple[int, ...]] = {}  # shapes of the whole arrays
        self._turns: dict[str, int] = {}  # the next turn of an array
        self._early: dict[tuple[str, int], Array] = {}
        self._noted = noted

    def answer(self, operation: str, *arguments: Any) -> Any:
        """Execute a client's request, and return the answer; if it cannot be executed, the error is the answer."""
        try:
            return getattr(self, operation)(*arguments)
        except (KeyError, ValueError) as error:
            return error

    def put(self, key: str, x: tuple[tuple[int, ...], Array]) -> None:
        self._whole[key], self.arrays[key] = x

    def get(self, key: str) -> tuple[tuple[int, ...], Array]:
        return self._whole[self.key(key)], self.arrays[key]

    def copy(self, x: str, y: str) -> None:
        super().copy(x, y)
        self._whole[y] = self._whole[x]

    def note(self, *values: Any) -> None:
        if self._noted is not None:
            self._noted(self.arrays, *values)

    def add(self, key: str, x: tuple[tuple[int, ...], Array], turn: int | None) -> None:
        shape, shard = x
        array, whole = self.arrays[self.key(key)], self._whole[key]
        if shape != whole or not np.can_cast(shard.dtype, array.dtype, "same_kind"):
            raise ValueError(
                f"{shard.dtype} of shape {shape} cannot be added to {key!r}, which is {array.dtype} of shape {whole}"
            )
        if turn is None:
            np.add(array, shard, out=array, casting="same_kind")
            return
        if turn >= (present := self._turns.get(key, 0)):
            self._early.setdefault((key, turn), shard)
        while (key, present) in self._early:
            np.add(array, self._early.pop((key, present)), out=array, casting="same_kind")
            present += 1
        self._turns[key] = present
