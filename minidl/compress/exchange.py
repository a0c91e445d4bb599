"""Exchanges: the compressors of a bucket share collectives, so that a bucket needs no more than one parameter does.

A compressor adds up one parameter's gradient over the nodes in a few rounds. In each round its generator yields a
request (`Gather`, `AllReduce`, `AllToAll`, `RingShift`, `SparseSum` or `GradientNorm`) and is resumed with the reply.
`begin` advances the generators of a bucket in lockstep and joins requests of the same kind into one collective. A
`Compute` request belongs to no round: it is served at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from minidl.cluster.algorithm import AllReduceAlgorithm
from minidl.cluster.comm import Communicator
from minidl.compress.sparse_all_reduce import ALL_REDUCE
from minidl.kernels import Array


@dataclass(frozen=True)
class Sum:
    """The result of adding up one parameter's compressed gradient.

    Attributes
        total     the sum over the nodes; the same bits on every node
        left_out  computes the error of this node's own encoding, perhaps in the memory of the array that was encoded;
                  the exact sum is total + the sum of all nodes' errors
    """

    total: Array
    left_out: Callable[[], Array]


@dataclass(frozen=True)
class Gather:
    """All-gather of bytes; the reply is a list in rank order.

    lengths: bytes that each rank sends; None if they depend on the values.
    """

    data: Array
    lengths: Sequence[int] | None = None


@dataclass(frozen=True)
class AllReduce:
    """All-reduce of numbers; the reply is their sum. Shape and dtype are the same on every node."""

    values: Array


@dataclass(frozen=True)
class AllToAll:
    """Sends the bytes `chunks[i]` to rank i, of one length on all nodes; the reply is a list in rank order."""

    chunks: Sequence[Array]


@dataclass(frozen=True)
class RingShift:
    """Sends bytes to the right neighbour in the ring; the reply is the bytes from the left neighbour.

    length: bytes in the reply; None if they depend on the values.
    """

    data: Array
    length: int | None = None


@dataclass(frozen=True)
class SparseSum:
    """All-reduce of sparse vectors with `size` entries; the reply is their dense sum.

    algorithm: a key of `sparse_all_reduce.ALL_REDUCE`.
    """

    indices: Array
    values: Array
    size: int
    algorithm: str


@dataclass(frozen=True)
class GradientNorm:
    """Asks for the 2-norm of this node's gradient of all parameters, known once backward is done; sends nothing.

    The reply is None outside a training run.
    """


@dataclass(frozen=True)
class Compute:
    """Charges `seconds` of computation to this node, as `comm.compute` does; the reply is None."""

    seconds: float
    label: str


Request = Gather | AllReduce | AllToAll | RingShift | SparseSum | GradientNorm | Compute
Exchange = Generator[Request, Any, Sum]  # one parameter: yields requests, is sent replies, returns the Sum
Wait = Callable[[], list[Any]]  # waits for a collective; returns one reply per request


@dataclass(frozen=True)
class Settings:
    """The settings of `begin`."""

    algorithm: AllReduceAlgorithm
    async_op: bool
    label: str | None
    gradient_norm: Callable[[], float] | None


def begin(
    exchanges: Sequence[Exchange],
    comm: Communicator,
    algorithm: AllReduceAlgorithm = "auto",
    async_op: bool = True,
    label: str | None = None,
    gradient_norm: Callable[[], float] | None = None,
) -> Callable[[], list[Sum]]:
    """Begin to add up the gradients of several parameters together; returns a function that waits for their sums.

    Parameters
        exchanges      one generator per parameter, in the same order on every node
        algorithm      algorithm of AllReduce requests, as in `comm.all_reduce`
        async_op       True: collectives of the first round overlap the program. RingShift, SparseSum and
                       GradientNorm requests, and all later rounds, begin when the caller waits for the sums
        label          label of the collectives, as in `comm.all_reduce`
        gradient_norm  computes the reply to GradientNorm requests
    """
    settings = Settings(algorithm, async_op, label, gradient_norm)
    sums: dict[int, Sum] = {}

    def advance(replies: dict[int, Any]) -> dict[int, Request]:
        requests = {}
        for i, reply in replies.items():
            try:
                requests[i] = _next_request(exchanges[i], reply, comm)
            except StopIteration as stop:
                sums[i] = stop.value
        return requests

    first = _begin_round(advance(dict.fromkeys(range(len(exchanges)))), comm, settings)

    def finish() -> list[Sum]:
        waiting = first
        while waiting:
            replies = {i: reply for numbers, wait in waiting for i, reply in zip(numbers, wait(), strict=True)}
            waiting = _begin_round(advance(dict(sorted(replies.items()))), comm, replace(settings, async_op=False))
        return [sums[i] for i in range(len(exchanges))]

    return finish


def _next_request(exchange: Exchange, reply: Any, comm: Communicator) -> Request:
    """Resume a generator until it needs a round; serve its Compute requests on the way."""
    request = exchange.send(reply)
    while isinstance(request, Compute):
        comm.compute(seconds=request.seconds, label=request.label)
        request = exchange.send(None)
    return request


def _begin_round(requests: dict[int, Request], comm: Communicator, settings: Settings) -> list[tuple[list[int], Wait]]:
    """Begin one collective for each kind of request; returns, for each, its parameters' indices and its replies."""
    kinds: dict[Any, dict[int, Request]] = {}
    for i, request in requests.items():
        kinds.setdefault(_kind(request), {})[i] = request
    return [
        (list(alike), COLLECTIVES[kind](list(alike.values()), comm, settings)) for (kind, *_), alike in kinds.items()
    ]


def _kind(request: Request) -> tuple[Any, ...]:
    """The key of a request; requests with equal keys are joined."""
    if isinstance(request, AllReduce):
        return AllReduce, request.values.dtype
    if isinstance(request, SparseSum):
        return SparseSum, request.values.dtype, request.algorithm
    return (type(request),)


def _gather(requests: list[Gather], comm: Communicator, settings: Settings) -> Wait:
    has_lengths = len(requests) > 1 and any(request.lengths is None for request in requests)
    data = join([request.data for request in requests], has_lengths)
    work = comm.all_gather(data, async_op=settings.async_op, label=settings.label)

    def wait() -> list[list[Array]]:
        messages = []
        for rank, received in enumerate(work.wait() if settings.async_op else work):
            lengths = [None if request.lengths is None else request.lengths[rank] for request in requests]
            messages.append(cut(received, lengths, has_lengths))
        return [list(one) for one in zip(*messages, strict=True)]

    return wait


def _all_reduce(requests: list[AllReduce], comm: Communicator, settings: Settings) -> Wait:
    values = np.concatenate([request.values.reshape(-1) for request in requests])
    work = comm.all_reduce(values, algorithm=settings.algorithm, async_op=settings.async_op, label=settings.label)

    def wait() -> list[Array]:
        total = work.wait() if settings.async_op else work
        sums = np.split(total, np.cumsum([request.values.size for request in requests])[:-1])
        return [one.reshape(request.values.shape) for one, request in zip(sums, requests, strict=True)]

    return wait


def _all_to_all(requests: list[AllToAll], comm: Communicator, settings: Settings) -> Wait:
    outgoing = [np.concatenate([request.chunks[rank] for request in requests]) for rank in range(comm.size)]
    work = comm.all_to_all(outgoing, async_op=settings.async_op, label=settings.label)
    lengths = [len(request.chunks[comm.rank]) for request in requests]

    def wait() -> list[list[Array]]:
        received = [cut(data, lengths, False) for data in (work.wait() if settings.async_op else work)]
        return [list(one) for one in zip(*received, strict=True)]

    return wait


def _ring_shift(requests: list[RingShift], comm: Communicator, settings: Settings) -> Wait:
    has_lengths = len(requests) > 1 and any(request.length is None for request in requests)
    data = join([request.data for request in requests], has_lengths)

    def wait() -> list[Array]:
        received = comm.sendrecv(data, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size)
        return cut(received, [request.length for request in requests], has_lengths)

    return wait


def _sparse_sum(requests: list[SparseSum], comm: Communicator, settings: Settings) -> Wait:
    """Concatenate the requests' vectors to one long sparse vector and add it up."""
    ends = np.cumsum([request.size for request in requests])
    starts = ends - [request.size for request in requests]
    indices = [request.indices + np.uint32(start) for request, start in zip(requests, starts, strict=True)]
    values = np.concatenate([request.values for request in requests])
    add_up = ALL_REDUCE[requests[0].algorithm]
    return lambda: np.split(add_up(comm, np.concatenate(indices), values, int(ends[-1])), ends[:-1])


def _gradient_norm(requests: list[GradientNorm], comm: Communicator, settings: Settings) -> Wait:
    norm = settings.gradient_norm
    return lambda: [None if norm is None else norm()] * len(requests)


COLLECTIVES: dict[Any, Callable[[list[Any], Communicator, Settings], Wait]] = {
    Gather: _gather,
    AllReduce: _all_reduce,
    AllToAll: _all_to_all,
    RingShift: _ring_shift,
    SparseSum: _sparse_sum,
    GradientNorm: _gradient_norm,
}


# ---- several messages as one ----

LENGTH = np.dtype(np.uint32)


def join(messages: Sequence[Array], has_lengths: bool) -> Array:
    """Concatenates messages; with `has_lengths`, their lengths (uint32) come first, for receivers that need them."""
    head = [np.array([len(message) for message in messages], LENGTH).view(np.uint8)] if has_lengths else []
    return np.concatenate([*head, *messages])


def cut(data: Array, lengths: Sequence[int | None], has_lengths: bool) -> list[Array]:
    """The messages that `join` concatenated; the last one is what remains after the others' lengths."""
    if has_lengths:
        head = LENGTH.itemsize * len(lengths)
        lengths, data = data[:head].copy().view(LENGTH).tolist(), data[head:]
    known: list[int] = [length or 0 for length in lengths[:-1]]
    return np.split(data, np.cumsum(known, dtype=np.int64))
