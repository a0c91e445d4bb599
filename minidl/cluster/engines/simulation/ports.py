"""The model behind Network(alpha, beta): each rank has one port out and one port in, and a transfer needs both.

A transfer of n bytes occupies the sender's port out and the receiver's port in for alpha + n beta seconds. It begins
when both are free. Every waiting transfer that can begin does so, in the order in which they became ready, so that none
blocks another (no head-of-line blocking). Source: the full-duplex single-port model of Thakur, Rabenseifner, Gropp
(2005), Optimization of Collective Communication Operations in MPICH, section 3.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from operator import itemgetter
from typing import Protocol


class Transfer(Protocol):
    """A message whose send and receive have both been posted: `nbytes` bytes from `src` to `dst`; an identity."""

    src: int
    dst: int
    nbytes: int


class Transport(Protocol):
    """A model of the network: decides when transfers begin and how long they take, in virtual seconds.

    The endpoint announces a transfer with `ready`. When nothing is left to do at this instant, the scheduler moves the
    clock to `next_event()`, and `advance` returns the transfers that have finished.
    """

    def ready(self, transfer: Transfer, now: float) -> None:
        """Both sides have posted the transfer; called after `advance` for this instant, any number of times."""
        ...

    def next_event(self) -> float:
        """The time of the next event if no further transfer becomes ready; infinity if there is none."""
        ...

    def advance(self, now: float) -> list[Transfer]:
        """The transfers that finish at exactly `now`, which is `next_event()`; starts the transfers that can start."""
        ...


Queue = dict[int, Transfer]  # by number, in the order of being ready


class Ports:
    """Transport over single ports; `alpha` seconds per message, `beta` seconds per byte."""

    def __init__(self, nodes: int, alpha: float, beta: float) -> None:
        self._alpha, self._beta = alpha, beta
        self._out_is_busy, self._in_is_busy = [False] * nodes, [False] * nodes
        self._finishing: dict[float, list[Transfer]] = {}
        self._times: list[float] = []  # a heap: the keys of the above
        self._waiting_to_go_out: dict[int, Queue] = {}  # by rank; a waiting transfer is in two queues
        self._waiting_to_come_in: dict[int, Queue] = {}
        self._number = 0

    def ready(self, transfer: Transfer, now: float) -> None:
        src, dst = transfer.src, transfer.dst
        if self._out_is_busy[src] or self._in_is_busy[dst]:
            self._number += 1
            self._waiting_to_go_out.setdefault(src, {})[self._number] = transfer
            self._waiting_to_come_in.setdefault(dst, {})[self._number] = transfer
        else:
            self._out_is_busy[src] = self._in_is_busy[dst] = True
            end = now + (self._alpha + transfer.nbytes * self._beta)
            finishing = self._finishing.get(end)
            if finishing is None:
                self._finishing[end] = [transfer]
                heapq.heappush(self._times, end)
            else:
                finishing.append(transfer)

    def is_idle(self, rank: int) -> bool:
        """Whether no transfer from or to the rank is under way or waits."""
        waits = rank in self._waiting_to_go_out or rank in self._waiting_to_come_in
        return not (self._out_is_busy[rank] or self._in_is_busy[rank] or waits)

    def put_aside(self, now: float) -> list[Transfer]:
        """Take out the transfers that have begun at this instant and take no time, until `put_back`."""
        if now not in self._finishing:
            return []
        self._times.remove(now)
        heapq.heapify(self._times)
        return self._finishing.pop(now)

    def put_back(self, transfers: list[Transfer], now: float) -> None:
        """Let these transfers finish at this instant again."""
        if transfers:
            if now not in self._finishing:
                heapq.heappush(self._times, now)
            self._finishing[now] = transfers + self._finishing.get(now, [])

    def next_event(self) -> float:
        return self._times[0] if self._times else float("inf")

    def advance(self, now: float) -> list[Transfer]:
        heapq.heappop(self._times)
        finished = self._finishing.pop(now)
        for transfer in finished:
            self._out_is_busy[transfer.src] = self._in_is_busy[transfer.dst] = False
        if self._waiting_to_go_out:
            self._begin_waiting(finished, now)
        return finished

    def _begin_waiting(self, finished: list[Transfer], now: float) -> None:
        """Begin the transfers that waited for the ports now free, in the order in which they became ready."""
        queues = []
        for transfer in finished:
            queues.append(_while_free(self._waiting_to_go_out.get(transfer.src), self._out_is_busy, transfer.src))
            queues.append(_while_free(self._waiting_to_come_in.get(transfer.dst), self._in_is_busy, transfer.dst))
        for number, transfer in heapq.merge(*queues, key=itemgetter(0)):
            src, dst = transfer.src, transfer.dst
            if not self._out_is_busy[src] and not self._in_is_busy[dst]:
                _take_out(self._waiting_to_go_out, src, number)
                _take_out(self._waiting_to_come_in, dst, number)
                self.ready(transfer, now)


def _while_free(queue: Queue | None, is_busy: list[bool], rank: int) -> Iterator[tuple[int, Transfer]]:
    for item in list(queue.items()) if queue else ():
        if is_busy[rank]:
            return
        yield item


def _take_out(waiting: dict[int, Queue], rank: int, number: int) -> None:
    del waiting[rank][number]
    if not waiting[rank]:
        del waiting[rank]
