"""The smallest network on which collectives run: greenlets, and messages that need both sides (a test's own engine).

It stands apart from the library's simulation, so that the two can be held against each other. A transfer starts when
both sides have posted it and takes alpha + n beta; a reduction of n bytes takes n gamma. Nothing is buffered, so a
collective that leans on buffers hangs, which is an error here, as is a message that nobody receives.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import greenlet
import numpy as np

REDUCE = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


@dataclass
class Half:
    """One side of a message: what is sent, or where to receive it."""

    posted: float
    payload: Any
    end: float | None = None


@dataclass
class Network:
    """The messages under way, and what has been sent so far by each rank."""

    alpha: float
    beta: float
    gamma: float
    sends: dict[tuple[int, int], deque[Half]] = field(default_factory=lambda: defaultdict(deque))
    receives: dict[tuple[int, int], deque[Half]] = field(default_factory=lambda: defaultdict(deque))
    sent: dict[tuple[int, int], list[int]] = field(default_factory=lambda: defaultdict(list))

    def match(self, link: tuple[int, int]) -> None:
        if self.sends[link] and self.receives[link]:
            send, receive = self.sends[link].popleft(), self.receives[link].popleft()
            nbytes = getattr(send.payload, "nbytes", 0)
            self.sent[link].append(nbytes)
            send.end = receive.end = max(send.posted, receive.posted) + self.alpha + nbytes * self.beta
            payload = send.payload.copy() if isinstance(send.payload, np.ndarray) else send.payload
            if receive.payload is not None:
                assert (receive.payload.shape, receive.payload.dtype) == (payload.shape, payload.dtype)
                assert receive.payload.flags.c_contiguous
                assert send.payload.flags.c_contiguous
                receive.payload[...] = payload
            else:
                receive.payload = payload


@dataclass
class Clock:
    now: float = 0.0


class Rank:
    """A PointToPoint over the network."""

    def __init__(self, network: Network, ranks: tuple[int, ...], rank: int, clock: Clock) -> None:
        self.network, self.ranks, self.rank, self.size, self.clock = network, ranks, rank, len(ranks), clock

    def _post(self, kind: str, link: tuple[int, int], payload: Any) -> Half:
        half = Half(self.clock.now, payload)
        getattr(self.network, kind)[link].append(half)
        self.network.match(link)
        return half

    def _wait(self, *halves: Half) -> None:
        while any(half.end is None for half in halves):
            greenlet.getcurrent().parent.switch()
        self.clock.now = max(half.end for half in halves)

    def send(self, x: Any, dst: int) -> None:
        self._wait(self._post("sends", (self.ranks[self.rank], self.ranks[dst]), x))

    def recv(self, src: int, *, out: Any = None) -> Any:
        half = self._post("receives", (self.ranks[src], self.ranks[self.rank]), out)
        self._wait(half)
        return half.payload

    def sendrecv(self, x: Any, dst: int, src: int, *, out: Any = None) -> Any:
        receive = self._post("receives", (self.ranks[src], self.ranks[self.rank]), out)
        self._wait(self._post("sends", (self.ranks[self.rank], self.ranks[dst]), x), receive)
        return receive.payload

    def reduce_into(self, a: Any, b: Any, op: str) -> None:
        REDUCE[op](a, b, out=a)
        self.clock.now += a.nbytes * self.network.gamma

    def among(self, ranks: Sequence[int]) -> Rank:
        few = tuple(self.ranks[rank] for rank in ranks)
        return Rank(self.network, few, few.index(self.ranks[self.rank]), self.clock)


@dataclass(frozen=True)
class Outcome:
    """What the ranks returned, when each was ready, and the sizes of all messages by (sender, receiver)."""

    results: list[Any]
    ready: list[float]
    sent: dict[tuple[int, int], list[int]]

    @property
    def seconds(self) -> float:
        return max(self.ready)

    def messages(self, rank: int) -> int:
        """How many messages the rank has sent."""
        return sum(len(sizes) for (source, _), sizes in self.sent.items() if source == rank)

    def nbytes(self, rank: int) -> int:
        """How many bytes the rank has sent."""
        return sum(sum(sizes) for (source, _), sizes in self.sent.items() if source == rank)


def run(p: int, program: Callable[[Rank], Any], alpha: float = 0.0, beta: float = 0.0, gamma: float = 0.0) -> Outcome:
    """Run the program on p ranks until all have returned."""
    network, results = Network(alpha, beta, gamma), [None] * p
    ranks = [Rank(network, tuple(range(p)), rank, Clock()) for rank in range(p)]

    def body(rank: int) -> None:
        results[rank] = program(ranks[rank])

    running = [greenlet.greenlet(lambda rank=rank: body(rank)) for rank in range(p)]
    while running:
        before = sum(len(sizes) for sizes in network.sent.values()), len(running)
        for one in running:
            one.switch()
        running = [one for one in running if not one.dead]
        if running and before == (sum(len(sizes) for sizes in network.sent.values()), len(running)):
            raise AssertionError(f"{len(running)} of {p} ranks wait for messages that never come")
    assert not any(network.sends.values()), "a message that nobody received"
    return Outcome(results, [rank.clock.now for rank in ranks], dict(network.sent))
