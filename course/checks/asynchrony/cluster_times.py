"""The time of synchronous and asynchronous training to a target, by formulas and by simulation.

Answers are judged by the formulas, which hold where the server is always busy or never makes a worker wait. The
simulation of `asynchronous_played` tells whether a cluster is such a case.
"""

from __future__ import annotations

import heapq
import itertools

from course.probes.asynchrony import Cluster
from minidl.random import Purpose, stream

Times = tuple[float, float]
"""Seconds of synchronous and of asynchronous training."""

PLAYED = 200
"""Gradients of each worker that are simulated."""


def asynchronous_played(cluster: Cluster, seed: int) -> float:
    """Seconds of asynchronous training, by a simulation of gradients, delays and exchanges."""
    rng = stream(Purpose.MANUAL, seed, "delays of workers")
    is_slow = rng.random((PLAYED, cluster.workers)) < cluster.slow_share
    seconds = cluster.seconds * (1 + (cluster.slow_factor - 1) * is_slow)
    seconds[:, 0] *= cluster.slowest
    needed = cluster.gradients * (1 + cluster.penalty * (cluster.workers - 1))
    return needed * one_after_the_other(seconds.T.tolist(), exchange(cluster))


def one_after_the_other(seconds: list[list[float]], exchange: float) -> float:
    """Mean seconds between two exchanges at one server, which serves the workers in order of arrival."""
    steps = [itertools.cycle(own) for own in seconds]
    arrivals = [(next(own), worker) for worker, own in enumerate(steps)]
    heapq.heapify(arrivals)
    free = began = 0.0
    total, warm = PLAYED * len(seconds), PLAYED * len(seconds) // 4
    for count in range(total):
        at, worker = heapq.heappop(arrivals)
        free = max(at, free) + exchange
        if count == warm:
            began = free
        heapq.heappush(arrivals, (free + next(steps[worker]), worker))
    return (free - began) / (total - warm - 1)


def exchange(cluster: Cluster) -> float:
    """Seconds of a push and a pull."""
    return 2 * (cluster.alpha + cluster.nbytes * cluster.beta)


def estimated(cluster: Cluster, slip: str = "") -> Times:
    """Both times by the right formulas, or with one known mistake: a name in SLIPS."""
    p, each = cluster.workers, cluster.seconds
    alpha = 0.0 if slip in ("no network", "no alpha") else cluster.alpha
    beta = 0.0 if slip == "no network" else cluster.beta
    slowest = 1.0 if slip == "no persistent" else cluster.slowest
    share = 0.0 if slip == "no random" else cluster.slow_share
    mean = 1 + share * (cluster.slow_factor - 1)
    delayed = 1 - (1 - share) ** p  # the probability that one of p gradients is
    longest = max(slowest, 1 + delayed * (cluster.slow_factor - 1))  # a cluster has one kind of stragglers at most
    if slip == "often" and share:
        longest = cluster.slow_factor
    elif slip == "mean":
        longest = mean * (p - 1 + slowest) / p
    rounds = {"no ring": 0, "one way": p - 1}.get(slip, 2 * (p - 1))
    ring = rounds * (alpha + cluster.nbytes / (1 if slip == "whole vectors" else p) * beta)
    x = (1 if slip == "one message" else 2) * (alpha + cluster.nbytes * beta)
    own = mean if slip != "delays of others" else 1.0
    in_turn = 0.0 if slip == "exchange beside" else x
    last = 1.0 if slip == "fast straggler" else slowest
    rate = (p - 1) / (each * own + in_turn) + 1 / (each * own * last + in_turn)
    if x and slip != "no queue":
        rate = min(rate, 1 / x)
    if slip == "queue adds":
        rate = 1 / (each * own / p + x)
    stale = {"no penalty": 0, "own": p}.get(slip, p - 1)
    needed = cluster.gradients * (1 + cluster.penalty * stale)
    if slip == "a step is a gradient":
        return cluster.gradients * (each * longest + ring), needed / rate
    return cluster.gradients / p * (each * longest + ring), needed / rate


SLIPS = {
    "no queue": "The server serves one worker at a time: no more than one gradient in 2 (alpha + nbytes beta) seconds.",
    "queue adds": "Workers compute while the server serves others: the longer of the two times counts, not their sum.",
    "exchange beside": "A worker computes, then exchanges: the next gradient begins after both.",
    "one message": "An exchange is a push and a pull, each of nbytes.",
    "no alpha": "alpha is left out: each message costs it.",
    "no network": "The network's time is left out.",
    "no ring": "The all-reduce is left out.",
    "one way": "The ring has 2 (p - 1) rounds: after the reduce-scatter there is the all-gather.",
    "whole vectors": "A message of the ring is a chunk of nbytes / p bytes, not a whole vector.",
    "a step is a gradient": "A synchronous step uses p gradients.",
    "mean": "A synchronous step takes as long as the slowest of its gradients, not as long as one on average.",
    "no persistent": "The persistent straggler is left out: a synchronous step takes as long as its slowest worker.",
    "fast straggler": "The persistent straggler makes fewer gradients a second in asynchronous training, too.",
    "no random": "The random stragglers are left out: of many workers, some worker is delayed in most steps.",
    "delays of others": "Delays hold up asynchronous workers, too: their mean time for a gradient is longer.",
    "often": "A synchronous step is delayed only if one of its p gradients is: with probability 1 - (1 - q)^p.",
    "no penalty": "The staleness penalty is left out: gradients that miss others' updates are worth less.",
    "own": "A gradient misses those of the p - 1 others, not of p.",
}
"""Explanations of the known mistakes, by name."""


def choice(times: Times) -> str:
    """The faster kind of training; synchronous if both take the same time."""
    return "synchronous" if times[0] <= times[1] else "asynchronous"
