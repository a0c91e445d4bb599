"""The requests that a server gets, as the assignment defines them, and the ranks that the check plays to make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Wrong, expect
from minidl.cluster import ANY, Communicator, Network

Array = NDArray[Any]

GET, PUT, ADD, DONE, CLOCK = 0.0, 1.0, 2.0, 3.0, 4.0
NAMES = {GET: "GET", PUT: "PUT", ADD: "ADD", DONE: "DONE", CLOCK: "CLOCK"}
ITEMSIZE = 8  # all messages are float64

AT_ONCE = Network(alpha=0.0, beta=0.0)
"""On this network messages take no time, so every time in a run is that of the work and of waiting."""

A_MOMENT = 1e-6  # seconds


def request(kind: float, values: Array | Sequence[float] = ()) -> Array:
    """The array for a request."""
    return np.concatenate([[kind], np.asarray(values, np.float64)])


def opened(message: Any, source: int) -> tuple[float, Array]:
    """The kind and the values of a request that the answer sent; raises Wrong for anything else."""
    if not isinstance(message, np.ndarray) or message.dtype != np.float64:
        got = f"an array of {message.dtype}" if isinstance(message, np.ndarray) else type(message).__name__
        if isinstance(message, np.ndarray) and message.dtype == np.uint8:
            got = "another Python object"
        raise Wrong(
            f"A server got {got} from rank {source}; a request is an array of float64.",
            "request(kind, values) makes one.",
        )
    if message.ndim != 1 or not message.size or message[0] not in NAMES:
        raise Wrong(
            f"A server got {expect.shown(message)} from rank {source}, which is no request: the first number of a "
            "request is its kind.",
            "request(kind, values) puts the kind in front of the values.",
        )
    return float(message[0]), message[1:]


def idle(_: Communicator) -> None:
    """The program of a further server that nobody asks: `comm.size - 1` is not the number of workers."""


@dataclass
class PlayedServer:
    """A server of the check with one shard: what came, in order, and what it replied.

    Attributes
        requests   (worker, kind, values) in order of arrival
        replies    for each worker: what it was sent, in order
        thinks     seconds that it takes before a reply
    """

    shard: Array
    workers: int
    thinks: float = 0.0
    requests: list[tuple[int, float, Array]] = field(default_factory=list)
    replies: dict[int, list[Array]] = field(default_factory=dict)

    def play(self, comm: Communicator) -> Array:
        """Serve until every worker has sent DONE."""
        return self.serve(comm, lambda: sum(kind == DONE for _, kind, _ in self.requests) < self.workers)

    def serve(self, comm: Communicator, goes_on: Callable[[], bool]) -> Array:
        """Serve while `goes_on()`; returns the values in the end."""
        values = self.shard.copy()
        while goes_on():
            message = comm.recv(ANY)
            source = comm.last_source
            kind, given = opened(message, source)
            self.requests.append((source, kind, given))
            if kind in (ADD, PUT) and given.shape != values.shape:
                raise Wrong(
                    f"Rank {source} sent {NAMES[kind]} with {given.size} values to rank {comm.rank}, whose shard has "
                    f"{values.size}.",
                    "np.array_split(delta, len(servers))[k] is the part of servers[k]; the kind is no value.",
                )
            if kind == ADD:
                values = values + given
            elif kind == PUT:
                values = given.copy()
            elif kind == GET:
                if self.thinks:
                    comm.compute(seconds=self.thinks)
                self.replies.setdefault(source, []).append(values.copy())
                comm.send(values, source)
            elif kind == CLOCK:
                raise Wrong(f"Rank {source} sent CLOCK, which this server does not know.")
        return values
