"""Exchanges: what the compressors of one bucket send to other nodes, joined into one collective.

A compressor adds up one parameter's gradient over the nodes in a few rounds. In each round it yields a request
(`Gather`, `AllReduce`, `AllToAll`, `Hop` or `SparseSum`) and is resumed with the reply. `begin` runs the compressors of
a bucket in step and joins their requests, so that a bucket sends as many messages as one parameter would.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minidl.cluster.comm import Communicator
from minidl.compress.sparse_all_reduce import ALL_REDUCE
from minidl.kernels import Array


@dataclass(frozen=True)
class Sum:
    """What adding up gives a node.

    Attributes
        total     the sum over the nodes, as compressed: the same bits on every node
        left_out  computes what this node's own encoding has lost; over all nodes, total + left_out is the exact sum
    """

    total: Array
    left_out: Callable[[], Array]


@dataclass(frozen=True)
class Gather:
    """Every node gets every node's bytes, as a list in rank order.

    lengths: the number of bytes that each rank sends; None where it depends on the values.
    """

    data: Array
    lengths: Sequence[int] | None = None


@dataclass(frozen=True)
class AllReduce:
    """Every node gets the sum of the nodes' values: numbers of the same shape and dtype everywhere."""

    values: Array


@dataclass(frozen=True)
class AllToAll:
    """Part i of each node's bytes goes to node i, which gets a list in rank order; all parts i have one length."""

    parts: Sequence[Array]


@dataclass(frozen=True)
class Hop:
    """These bytes go to the right neighbour in the ring of nodes; the reply is what comes from the left one.

    length: the number of bytes that come; None where it depends on the values.
    """

    data: Array
    length: int | None = None


@dataclass(frozen=True)
class SparseSum:
    """Every node gets the dense sum of the nodes' sparse vectors of `size` entries, added up on the way.

    way: a key of `sparse_all_reduce.ALL_REDUCE`.
    """

    indices: Array
    values: Array
    size: int
    way: str


Request = Gather | AllReduce | AllToAll | Hop | SparseSum
AddingUp = Generator[Request, Any, Sum]  # one parameter: yields requests, is sent replies, returns the Sum
Replies = Callable[[], list[Any]]


def begin(
    parameters: Sequence[AddingUp],
    comm: Communicator,
    algorithm: str = "auto",
    async_op: bool = True,
    label: str | None = None,
) -> Callable[[], list[Sum]]:
    """Begin to add up several parameters together; the function that is returned waits for their sums.

    Parameters
        parameters  a generator for each parameter, in the same order on every node
        algorithm   of requests that are all-reduces, as in `comm.all_reduce`
        async_op    whether the first round overlaps the program; hops and sparse sums begin when they are waited for
        label       of the collectives, as in `comm.all_reduce`
    """
    sums: dict[int, Sum] = {}

    def advance(replies: dict[int, Any]) -> dict[int, Request]:
        requests = {}
        for i, reply in replies.items():
            try:
                requests[i] = parameters[i].send(reply)
            except StopIteration as stop:
                sums[i] = stop.value
        return requests

    first = _begin_round(advance(dict.fromkeys(range(len(parameters)))), comm, algorithm, async_op, label)

    def finish() -> list[Sum]:
        waiting = first
        while waiting:
            replies = {i: reply for numbers, wait in waiting for i, reply in zip(numbers, wait(), strict=True)}
            waiting = _begin_round(advance(dict(sorted(replies.items()))), comm, algorithm, False, label)
        return [sums[i] for i in range(len(parameters))]

    return finish


def _begin_round(
    requests: dict[int, Request], comm: Communicator, algorithm: str, async_op: bool, label: str | None
) -> list[tuple[list[int], Replies]]:
    """Begin a collective for each kind of request; the parameters' numbers, and what waits for the replies to them."""
    kinds: dict[Any, dict[int, Any]] = {}
    for i, request in requests.items():
        kinds.setdefault(_kind(request), {})[i] = request
    waiting = []
    for (kind, *_), alike in kinds.items():
        joined = list(alike.values())
        if kind is Gather:
            replies = _gather(joined, comm, async_op, label)
        elif kind is AllReduce:
            replies = _all_reduce(joined, comm, algorithm, async_op, label)
        elif kind is AllToAll:
            replies = _all_to_all(joined, comm, async_op, label)
        elif kind is Hop:
            replies = _hop(joined, comm)
        else:
            replies = _sparse_sum(joined, comm)
        waiting.append((list(alike), replies))
    return waiting


def _kind(request: Request) -> tuple[Any, ...]:
    """Requests of one kind can be joined."""
    if isinstance(request, AllReduce):
        return AllReduce, request.values.dtype
    if isinstance(request, SparseSum):
        return SparseSum, request.values.dtype, request.way
    return (type(request),)


def _gather(requests: list[Gather], comm: Communicator, async_op: bool, label: str | None) -> Replies:
    has_lengths = len(requests) > 1 and any(request.lengths is None for request in requests)
    data = join([request.data for request in requests], has_lengths)
    work = comm.all_gather(data, async_op=async_op, label=label)

    def wait() -> list[list[Array]]:
        gathered = work.wait() if async_op else work
        parts = []
        for rank, received in enumerate(gathered):
            lengths = [None if request.lengths is None else request.lengths[rank] for request in requests]
            parts.append(cut(received, lengths, has_lengths))
        return [list(one) for one in zip(*parts, strict=True)]

    return wait


def _all_reduce(
    requests: list[AllReduce], comm: Communicator, algorithm: str, async_op: bool, label: str | None
) -> Replies:
    values = np.concatenate([request.values.reshape(-1) for request in requests])
    work = comm.all_reduce(values, algorithm=algorithm, async_op=async_op, label=label)

    def wait() -> list[Array]:
        total = work.wait() if async_op else work
        ends = np.cumsum([request.values.size for request in requests])[:-1]
        parts = np.split(total, ends)
        return [part.reshape(request.values.shape) for part, request in zip(parts, requests, strict=True)]

    return wait


def _all_to_all(requests: list[AllToAll], comm: Communicator, async_op: bool, label: str | None) -> Replies:
    outgoing = [np.concatenate([request.parts[rank] for request in requests]) for rank in range(comm.size)]
    work = comm.all_to_all(outgoing, async_op=async_op, label=label)

    def wait() -> list[list[Array]]:
        received = work.wait() if async_op else work
        lengths = [len(request.parts[comm.rank]) for request in requests]
        parts = [cut(data, lengths, False) for data in received]
        return [list(one) for one in zip(*parts, strict=True)]

    return wait


def _hop(requests: list[Hop], comm: Communicator) -> Replies:
    has_lengths = len(requests) > 1 and any(request.length is None for request in requests)
    data = join([request.data for request in requests], has_lengths)

    def wait() -> list[Array]:
        received = comm.sendrecv(data, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size)
        return cut(received, [request.length for request in requests], has_lengths)

    return wait


def _sparse_sum(requests: list[SparseSum], comm: Communicator) -> Replies:
    """The vectors one after the other are one long sparse vector."""
    ends = np.cumsum([request.size for request in requests])
    starts = ends - [request.size for request in requests]
    indices = [request.indices + np.uint32(start) for request, start in zip(requests, starts, strict=True)]
    values = np.concatenate([request.values for request in requests])
    add_up = ALL_REDUCE[requests[0].way]
    return lambda: np.split(add_up(comm, np.concatenate(indices), values, int(ends[-1])), ends[:-1])


# ---- several messages as one ----

LENGTH = np.dtype(np.uint32)


def join(parts: Sequence[Array], has_lengths: bool) -> Array:
    """The bytes one after the other; before them, where the receiver cannot know them, their lengths (uint32)."""
    head = [np.array([len(part) for part in parts], LENGTH).view(np.uint8)] if has_lengths else []
    return np.concatenate([*head, *parts])


def cut(data: Array, lengths: Sequence[int | None], has_lengths: bool) -> list[Array]:
    """The parts that `join` has joined; their lengths as the receiver knows them, the last one being the rest."""
    if has_lengths:
        head = LENGTH.itemsize * len(lengths)
        lengths, data = data[:head].copy().view(LENGTH).tolist(), data[head:]
    known: list[int] = [length or 0 for length in lengths[:-1]]
    return np.split(data, np.cumsum(known, dtype=np.int64))
