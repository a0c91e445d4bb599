"""A key-value store of arrays, divided among servers: clients get, put, and add to them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import numpy as np

from minidl.arguments import whole_number
from minidl.cluster.collectives.partition import split
from minidl.cluster.comm import Communicator
from minidl.kernels import Array
from minidl.parallel.servers.server_loop import ServerLoop, ask, leave, locked


class Store:
    """A store of arrays on the last `servers` ranks of a run; the ranks before them are its clients.

        put(key, x)    the array under this key is x
        get(key)       a copy of it
        add(key, x)    the array under this key becomes array + x

    Every array is divided into `servers` shards of about equal length, one on each server, so that each server carries
    an equal share of the traffic. A server serves one request at a time: on a shard a request is atomic, and additions
    commute, so any order of them gives the same sum (of floats up to rounding). Over several servers a request is not
    atomic: a reader may find one shard from before another client's request and the next from after it. Within
    `with store.lock():` a client has the store to itself if the others take the lock too.

    A request costs a message to each server and one back: the bytes of the array, and about 150 more per message.
    Servers call `serve`; clients leave the store with `close()`, or use it as a context manager.

    Raises
        KeyError     for a key under which there is nothing
        ValueError   for an array of another shape or of a dtype that cannot be added; without a server or a client

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
        Piccolo (OSDI 2010), for updates that commute.
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
        answers = self._ask("get", key, None)
        shape, _ = answers[0]
        return np.concatenate([shard for _, shard in answers]).reshape(shape)

    def add(self, key: str, x: Array) -> None:
        """Add x to the array under this key, which keeps its dtype."""
        self._ask("add", key, np.asarray(x))

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

    def _ask(self, operation: str, key: str, x: Array | None) -> Sequence[Any]:
        shards: Sequence[Any] = [None] * len(self.servers) if x is None else split(x.reshape(-1), len(self.servers))
        shape = None if x is None else x.shape
        answers = ask(self.comm, self.servers, [(operation, key, shape, shard) for shard in shards])
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    # Servers

    def serve(self) -> None:
        """Serve the clients until all have left or failed."""
        shards: dict[str, tuple[Any, Array]] = {}  # this server's, with the shapes of the whole arrays
        for client, request in (loop := ServerLoop(self.comm, self.clients)):
            if request is not None:
                loop.answer(client, handle(shards, *request))


def handle(shards: dict[str, tuple[Any, Array]], operation: str, key: str, shape: Any, x: Any) -> Any:
    """Execute a client's request, and return the answer; if it cannot be executed, the error is the answer."""
    if operation == "put":
        shards[key] = shape, x
        return None
    if key not in shards:
        return KeyError(f"there is nothing under {key!r} in the store: put it first")
    whole, shard = shards[key]
    if operation == "get":
        return whole, shard
    if shape != whole or not np.can_cast(x.dtype, shard.dtype, "same_kind"):
        return ValueError(
            f"{x.dtype} of shape {shape} cannot be added to {key!r}, which is {shard.dtype} of shape {whole}"
        )
    np.add(shard, x, out=shard, casting="same_kind")
    return None
