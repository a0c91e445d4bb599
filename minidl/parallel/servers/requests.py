"""Requests: merges the requests of the ranks of a worker, which is one replica of the model, into one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minidl.cluster.diagnosis.errors import RankFailed
from minidl.kernels import Array
from minidl.parallel.run.session import Session
from minidl.parallel.servers.keys import Key, Layout, Positions, is_any
from minidl.parallel.servers.server_loop import ServerLoop


class Requests:
    """The requests that reach a server, as pairs (worker, request), until every worker has left or failed.

        for worker, request in requests:
            act on the request
            answer this worker, or others that wait, or none

    The ranks of a worker ask together, each for its own keys (see `Worker`). When all have asked, their requests become
    one: arrays are merged into one array of the server's slice; numbers are those of the worker's first rank. Then each
    rank is sent the elements of its keys, so all ranks of a worker see the same version of the weights.

    A worker that leaves, or one rank of which fails, gives the pair (worker, None). The other ranks of a failed worker
    get RankFailed as the answer.

    Parameters
        session                 session of the server
        layout                  layout of the weights on the servers
        in_turn, one_at_a_time  as for `ServerLoop`

    Attributes
        present, waiting, ahead, failed   as those of `ServerLoop`, by worker
    """

    def __init__(self, session: Session, layout: Layout, in_turn: bool = False, one_at_a_time: bool = False) -> None:
        self._size = layout.borders[session.server + 1] - layout.borders[session.server]
        self._worker = [session.plan.coordinates(rank)["dp"] for rank in range(session.nodes)]
        self._fetched: dict[int, Positions] = {}  # rank -> positions of its keys in the slice
        self._pushed: dict[int, Positions] = {}
        self._find_keys(session, layout)
        self._ranks: dict[int, list[int]] = {worker: [] for worker in range(session.replicas)}  # clients by worker
        for rank, positions in self._fetched.items():
            ranks = self._ranks[self._worker[rank]]
            if not ranks or is_any(positions):  # the first rank of a worker asks every server
                ranks.append(rank)
        clients = [rank for ranks in self._ranks.values() for rank in ranks]
        self._loop = ServerLoop(session.comm, clients, in_turn, one_at_a_time)
        self._asked: dict[int, dict[int, Any]] = {worker: {} for worker in self._ranks}
        self.present = set(self._ranks)
        self.waiting: dict[int, Any] = {}
        self.failed: dict[int, RankFailed] = {}

    def _find_keys(self, session: Session, layout: Layout) -> None:
        everything = [Key(name) for name, _ in session.model.named_parameters()]
        for rank in range(session.nodes):
            held = pushed = everything
            if session.plan.is_split:
                try:
                    held, pushed = session.comm.recv(rank)
                except RankFailed:  # its worker fails when the loop waits for it
                    held = pushed = everything
            self._fetched[rank] = layout.on_server(session.server, held)
            self._pushed[rank] = self._fetched[rank] if held is pushed else layout.on_server(session.server, pushed)

    @property
    def ahead(self) -> set[int]:
        return {self._worker[rank] for rank in self._loop.ahead}

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        for rank, request in self._loop:
            worker = self._worker[rank]
            if worker not in self.present:
                if request is not None:
                    self._refuse(rank, worker)
            elif request is None:
                self.present.discard(worker)
                self.waiting.pop(worker, None)
                if rank in self._loop.failed:
                    self.failed[worker] = self._loop.failed[rank]
                    for other in list(self._loop.waiting):
                        if self._worker[other] == worker:
                            self._refuse(other, worker)
                yield worker, None
            else:
                asked = self._asked[worker]
                asked[rank] = request
                if len(asked) == len(self._ranks[worker]):
                    self._asked[worker] = {}
                    whole = self._merged(asked)
                    if rank in self._loop.waiting:
                        self.waiting[worker] = whole
                    yield worker, whole

    def answer(self, worker: int, reply: tuple[Any, ...], is_last: bool = False) -> None:
        """Send the worker the answer to its request, as `ServerLoop.answer`."""
        self.waiting.pop(worker, None)
        if is_last:
            self.present.discard(worker)
        for rank in self._ranks[worker]:
            mine = tuple(x[self._fetched[rank]] if isinstance(x, np.ndarray) else x for x in reply)
            self._loop.answer(rank, mine, is_last)

    def _merged(self, asked: dict[int, tuple[Any, ...]]) -> tuple[Any, ...]:
        """Merge the requests of a worker's ranks."""
        ranks = sorted(asked)
        columns = zip(*(asked[rank] for rank in ranks), strict=True)
        return tuple(self._vector(ranks, c) if isinstance(c[0], np.ndarray) else c[0] for c in columns)

    def _vector(self, ranks: list[int], shares: tuple[Array, ...]) -> Array:
        if len(shares[0]) == self._size:
            return shares[0]
        vector = np.zeros(self._size, shares[0].dtype)  # a frozen parameter's gradient is zero
        for rank, share in zip(ranks, shares, strict=True):
            vector[self._pushed[rank]] = share
        return vector

    def _refuse(self, rank: int, worker: int) -> None:
        lost = self.failed[worker].rank
        self._loop.answer(rank, RankFailed(f"rank {lost} of the same worker failed", rank=lost))
