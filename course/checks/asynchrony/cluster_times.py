"""The time to the target of synchronous and asynchronous training on a cluster: played event by event, and estimated.

`played` is the judge. The estimates are those that answers make: the right ones, and some with known mistakes.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from course.probes.asynchrony import Cluster
from minidl.random import Purpose, stream

Times = tuple[float, float]
"""Seconds of synchronous and of asynchronous training, for the work of one gradient of synchronous training."""

GRADIENTS = 200
"""Gradients of each worker that are played."""


def played(cluster: Cluster, seed: int) -> Times:
    """Both times, by playing every gradient, delay and message."""
    p = cluster.workers
    rng = stream(Purpose.MANUAL, seed, "delays of workers")
    delays = 1 + (cluster.slow_factor - 1) * (rng.random((GRADIENTS, p)) < cluster.slow_share)
    seconds = cluster.seconds * delays
    seconds[:, 0] *= cluster.slowest
    together = float(seconds.max(axis=1).mean() + all_reduce(cluster)) / p
    return together, (1 + cluster.penalty * (p - 1)) * one_after_the_other(seconds.T.tolist(), exchange(cluster))


def one_after_the_other(seconds: list[list[float]], exchange: float) -> float:
    """Mean seconds between two exchanges at one server, which serves the workers in order of arrival."""
    steps = [itertools.cycle(own) for own in seconds]
    arrivals = [(next(own), worker) for worker, own in enumerate(steps)]
    heapq.heapify(arrivals)
    free = began = 0.0
    total, warm = GRADIENTS * len(seconds), GRADIENTS * len(seconds) // 4
    for count in range(total):
        at, worker = heapq.heappop(arrivals)
        free = max(at, free) + exchange
        if count == warm:
            began = free
        heapq.heappush(arrivals, (free + next(steps[worker]), worker))
    return (free - began) / (total - warm - 1)


def all_reduce(cluster: Cluster, chunks: bool = True) -> float:
    """Seconds of a ring all-reduce; without chunks, of whole vectors going round the ring."""
    p = cluster.workers
    return 2 * (p - 1) * (cluster.alpha + cluster.nbytes / (p if chunks else 1) * cluster.beta)


def exchange(cluster: Cluster) -> float:
    """Seconds of a push and a pull."""
    return 2 * (cluster.alpha + cluster.nbytes * cluster.beta)


def estimated(
    cluster: Cluster,
    *,
    network: bool = True,
    contention: bool = True,
    chunks: bool = True,
    random: bool = True,
    all_wait: bool = True,
    persistent: bool = True,
    penalty: bool = True,
    ring: bool = True,
    delays_alone: bool = True,
    often: bool = False,
    queue_adds: bool = False,
) -> Times:
    """Both times by formulas; what is switched off is left out.

    all_wait: a synchronous step takes as long as the slowest of p gradients, and not as long as one on average.
    ring: the all-reduce takes time.
    delays_alone: random delays hold up asynchronous workers, too.
    often: with random stragglers, some worker is delayed in every synchronous step.
    queue_adds: asynchronous workers compute and exchange by turns, so that the times add up.
    """
    p, each = cluster.workers, cluster.seconds
    slowest = cluster.slowest if persistent else 1.0
    share = cluster.slow_share if random else 0.0
    mean = 1 + share * (cluster.slow_factor - 1)
    if often and share:
        longest = max(slowest, cluster.slow_factor)
    elif all_wait:
        nobody = (1 - share) ** (p - 1)  # the probability that nothing delays any of workers 1 to p - 1
        longest = share * slowest * cluster.slow_factor
        longest += (1 - share) * (nobody * slowest + (1 - nobody) * max(slowest, cluster.slow_factor))
    else:
        longest = mean * (p - 1 + slowest) / p
    x = exchange(cluster) if network else 0.0
    together = all_reduce(cluster, chunks) if network and ring else 0.0
    mean = mean if delays_alone else 1.0
    rate = (p - 1) / (each * mean + x) + 1 / (each * mean * slowest + x)
    if contention and x:
        rate = min(rate, 1 / x)
    if queue_adds:
        rate = 1 / (each * mean / p + x)
    more = 1 + cluster.penalty * (p - 1) if penalty else 1.0
    return (each * longest + together) / p, more / rate


def choice(times: Times) -> str:
    """The name of the faster one."""
    return "synchronous" if times[0] <= times[1] else "asynchronous"


MISTAKES: dict[str, Callable[[Cluster], str]] = {
    "The same choice for every cluster: always synchronous.": lambda cluster: "synchronous",
    "The same choice for every cluster: always asynchronous.": lambda cluster: "asynchronous",
    "The server serves one worker at a time: no more than one gradient in 2 (alpha + nbytes beta) seconds.": (
        lambda cluster: choice(estimated(cluster, contention=False))
    ),
    "A message of the ring is a chunk of nbytes / p bytes, not a whole vector.": (
        lambda cluster: choice(estimated(cluster, chunks=False))
    ),
    "The network's time is left out.": lambda cluster: choice(estimated(cluster, network=False)),
    "The persistent straggler is left out: a synchronous step takes as long as its slowest worker.": (
        lambda cluster: choice(estimated(cluster, persistent=False))
    ),
    "The random stragglers are left out: of many workers, some worker is delayed in most steps.": (
        lambda cluster: choice(estimated(cluster, random=False))
    ),
    "A synchronous step takes as long as the slowest of its gradients, not as long as one on average.": (
        lambda cluster: choice(estimated(cluster, all_wait=False))
    ),
    "The staleness penalty is left out: gradients that miss others' updates are worth less.": (
        lambda cluster: choice(estimated(cluster, penalty=False))
    ),
    "The all-reduce is left out: each of its 2 (p - 1) rounds takes alpha seconds and more.": (
        lambda cluster: choice(estimated(cluster, ring=False))
    ),
    "Delays hold up asynchronous workers, too: their mean time for a gradient is longer.": (
        lambda cluster: choice(estimated(cluster, delays_alone=False))
    ),
    "A synchronous step is delayed only if at least one of its p gradients is: with probability 1 - (1 - q)^p.": (
        lambda cluster: choice(estimated(cluster, often=True))
    ),
    "Workers compute while the server serves others: the longer of the two times counts, not their sum.": (
        lambda cluster: choice(estimated(cluster, queue_adds=True))
    ),
}
"""For each known mistake, the sentence that explains it, and what it chooses."""
