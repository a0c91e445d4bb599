"""The model behind topologies: messages that are in flight at the same time share the links max-min fairly.

A message first waits the latencies of its path. Then it is a flow: it uses a share of every link on its path at the
same rate, until all its bytes are transferred. There are no ports to wait for; two flows on one link slow each other
down. The rates are max-min fair, and they change whenever a flow begins or ends.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from minidl.cluster.cost.topologies import Topology
from minidl.cluster.engines.simulation.ports import Transfer

# Rounding makes simultaneous events differ in the last digits; events within this fraction of the clock are one.
SAME_INSTANT = 1e-12


def fair_rates(flows: Sequence[Sequence[int]], capacities: Sequence[float] | Mapping[int, float]) -> list[float]:
    """The max-min fair rate of each flow: no flow can get more without taking from one that has as much or less.

    Parameters
        flows       for each flow, the numbers of its links, each once
        capacities  bytes per second of each link

    The algorithm is progressive filling: all rates rise together; when a link is full, its flows keep their rate and
    the others rise further. A flow without links gets an infinite rate. f flows of l links each take O(f l log(f l)).

    Source: Bertsekas and Gallager, Data Networks (2nd edition, 1992), section 6.5.2.

    >>> fair_rates([(0,), (0, 1), (1,)], capacities=[1.0, 10.0])
    [0.5, 0.5, 9.5]
    """
    rates = [math.inf] * len(flows)
    users: dict[int, list[int]] = {}
    for flow, links in enumerate(flows):
        for link in links:
            users.setdefault(link, []).append(flow)
    room = {link: capacities[link] for link in users}  # capacity that the flows with a final rate leave
    rising = {link: len(flows_here) for link, flows_here in users.items()}
    filling = [(room[link] / rising[link], link) for link in users]  # a heap: the rate at which each link is full
    heapq.heapify(filling)
    while filling:
        rate, link = heapq.heappop(filling)
        if not rising[link]:
            continue
        if room[link] / rising[link] > rate:  # other links stopped some of its flows, so it fills later
            heapq.heappush(filling, (room[link] / rising[link], link))
            continue
        for flow in users[link]:
            if rates[flow] == math.inf:
                rates[flow] = rate
                for other in flows[flow]:
                    room[other] -= rate
                    rising[other] -= 1
    return rates


@dataclass(slots=True, eq=False)
class Flow:
    """A transfer in flight: at the time `since`, `remaining` bytes were left; at the present rate it ends at `end`."""

    transfer: Transfer
    number: int
    links: tuple[int, ...]
    remaining: float
    rate: float = 0.0
    since: float = 0.0
    end: float = math.inf


class Flows:
    """Transport over the shared links of a topology."""

    def __init__(self, topology: Topology) -> None:
        self._path, self._capacities = lru_cache(maxsize=1 << 20)(topology.path), topology.capacities
        self._starting: list[tuple[float, int, Flow]] = []  # a heap of the flows that still wait for their latency
        self._ending: list[tuple[float, int, Flow]] = []  # a heap; an entry whose flow has another end is stale
        self._users: dict[int, dict[Flow, None]] = {}  # the flows on each link, in order
        self._changed: dict[int, None] = {}  # links that a flow has entered or left since the rates were computed
        self._under_way = 0
        self._number = 0
        self._now = 0.0

    def ready(self, transfer: Transfer, now: float) -> None:
        latency, links = self._path(transfer.src, transfer.dst)
        self._number += 1
        flow = Flow(transfer, self._number, links, float(transfer.nbytes))
        heapq.heappush(self._starting, (now + latency, flow.number, flow))

    def next_event(self) -> float:
        if self._changed:
            self._share_again()
        while self._ending and self._ending[0][0] != self._ending[0][2].end:
            heapq.heappop(self._ending)
        start = self._starting[0][0] if self._starting else math.inf
        return min(start, self._ending[0][0]) if self._ending else start

    def advance(self, now: float) -> list[Transfer]:
        self._now, until = now, now * (1 + SAME_INSTANT)
        finished = []
        while self._ending and self._ending[0][0] <= until:
            end, _, flow = heapq.heappop(self._ending)
            if end == flow.end:
                self._leave(flow)
                finished.append(flow.transfer)
        while self._starting and self._starting[0][0] <= until:
            flow = heapq.heappop(self._starting)[2]
            if flow.remaining and flow.links:
                self._enter(flow, now)
            else:
                finished.append(flow.transfer)
        return finished

    def _enter(self, flow: Flow, now: float) -> None:
        flow.since = now
        self._under_way += 1
        is_alone = True
        for link in flow.links:
            users = self._users.setdefault(link, {})
            if users:
                is_alone = False
            users[flow] = None
        if is_alone:  # the usual case, round a ring for all messages: it changes no other rate
            flow.rate = min(map(self._capacities.__getitem__, flow.links))
            flow.end = now + flow.remaining / flow.rate
            heapq.heappush(self._ending, (flow.end, flow.number, flow))
        else:
            self._changed.update(dict.fromkeys(flow.links))

    def _leave(self, flow: Flow) -> None:
        flow.end = math.inf
        self._under_way -= 1
        for link in flow.links:
            users = self._users[link]
            del users[flow]
            if users:
                self._changed[link] = None

    def _share_again(self) -> None:
        """Compute new rates for all flows that share links, directly or through other flows, with a changed link."""
        flows = self._connected()
        self._changed.clear()
        now = self._now
        for flow, rate in zip(flows, fair_rates([flow.links for flow in flows], self._capacities), strict=True):
            if rate != flow.rate:
                flow.remaining = max(0.0, flow.remaining - flow.rate * (now - flow.since))
                flow.rate, flow.since, flow.end = rate, now, now + flow.remaining / rate
                heapq.heappush(self._ending, (flow.end, flow.number, flow))
        if len(self._ending) > 4 * self._under_way + 64:
            self._ending = [entry for entry in self._ending if entry[0] == entry[2].end]
            heapq.heapify(self._ending)

    def _connected(self) -> list[Flow]:
        links = list(self._changed)
        seen = set(links)
        found: dict[Flow, None] = {}
        for link in links:  # grows as it goes
            for flow in self._users.get(link, ()):
                if flow not in found:
                    found[flow] = None
                    for other in flow.links:
                        if other not in seen:
                            seen.add(other)
                            links.append(other)
        return list(found)
