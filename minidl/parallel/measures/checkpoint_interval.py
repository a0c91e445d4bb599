"""How often to save: the interval between checkpoints with which failures cost a run the least time.

A run works for `interval` seconds, saves, and so on. Goodput is the fraction of its time that is spent on work that no
failure undoes. All times are in seconds:

    interval  work between two checkpoints
    cost      from the beginning of a checkpoint until it is whole, delta in the papers
    mtbf      mean time between two failures of the job, M in the papers; that of a node divided by the nodes
    restart   from a failure until work goes on from the last whole checkpoint
    blocking  time for which training stops at a checkpoint; None: for all of `cost`. An asynchronous checkpoint is
              copied in this time, and written while training goes on; the next one begins when it is whole, or later

References
    Young, A first order approximation to the optimum checkpoint interval (CACM 17(9), 1974); Daly, A higher order
    estimate of the optimum checkpoint interval for restart dumps (FGCS 22(3), 2006).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from minidl.arguments import real_number, whole_number
from minidl.random import Purpose, stream

Seconds = NDArray[np.float64]


def young(cost: float, mtbf: float) -> float:
    """Young's interval, sqrt(2 cost mtbf): the best one if checkpoints are much shorter than the time to a failure.

    >>> young(5 * 60, 24 * 3600) / 60
    120.0
    """
    return math.sqrt(2 * _positive("cost", cost) * _positive("mtbf", mtbf))


def daly(cost: float, mtbf: float) -> float:
    """Daly's interval, of higher order in cost / mtbf; from cost = 2 mtbf on, it is mtbf.

    >>> round(daly(5 * 60, 15 * 60) / 60, 1)
    9.1
    """
    ratio = _positive("cost", cost) / (2 * _positive("mtbf", mtbf))
    return young(cost, mtbf) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - cost if ratio < 1 else mtbf


def best_interval(cost: float, mtbf: float, blocking: float | None = None) -> float:
    """The interval with the largest `goodput`, by bisection: neither depends on the restart.

    With t = interval / mtbf and b = blocking / mtbf it is the root of 1 - t = exp(-(t + b)), or the time in which an
    asynchronous checkpoint is written, if that is longer.
    """
    blocking = _blocking(cost, blocking)
    b, low, high = blocking / _positive("mtbf", mtbf), 0.0, 1.0
    for _ in range(100):
        t = (low + high) / 2
        low, high = (t, high) if -t > math.expm1(-t - b) else (low, t)
    return max(low * mtbf, cost - blocking)


def goodput(interval: float, cost: float, mtbf: float, restart: float = 0.0, blocking: float | None = None) -> float:
    """The expected goodput of a long run whose failures come at random, independent of the past (exponential).

    It is Daly's work / (expected time of the run), in which checkpoints and restarts can fail, too; without `blocking`:

        goodput = interval / (mtbf exp(restart / mtbf) (exp((interval + cost) / mtbf) - 1))   Daly (2006)

    Raises ValueError for an interval in which the last asynchronous checkpoint would not be written.

    >>> round(goodput(interval=57 * 60, cost=5 * 60, mtbf=6 * 3600, restart=10 * 60), 3)
    0.819
    """
    blocking = _blocking(cost, blocking)
    _check_interval(interval, cost, blocking)
    real_number("restart", restart, at_least=0)
    lost = math.exp(-(restart + interval + cost) / _positive("mtbf", mtbf))
    return interval / mtbf * lost / -math.expm1(-(interval + blocking) / mtbf)


def failures(nodes: int, node_mtbf: float, seconds: float, shape: float = 1.0, seed: int = 0) -> Seconds:
    """The times at which nodes fail, in order, drawn at random; each is replaced by a new node at once.

    Parameters
        nodes      number of nodes
        node_mtbf  mean time from a node's start to its failure
        seconds    only failures before this time
        shape      of the Weibull distribution of this time, at least 0.1; 1.0 is the exponential one; below 1, new
                   nodes fail more often than old ones
        seed       another one gives other times
    """
    generator = stream(Purpose.NODE_FAILURES, whole_number("seed", seed, at_least=0))
    scale = _positive("node_mtbf", node_mtbf) / math.gamma(1 + 1 / real_number("shape", shape, at_least=0.1))
    _positive("seconds", seconds)
    now, times = np.zeros(whole_number("nodes", nodes, at_least=1)), list[Seconds]()
    while now.size:
        now = now + scale * generator.weibull(shape, now.size)
        now = now[now < seconds]
        times.append(now)
    return np.sort(np.concatenate(times))


@dataclass(frozen=True)
class Attempts:
    """What a simulated run did from each failure to the next; the seconds of an attempt, one array for each activity.

    restart  until work went on
    work     saved by a whole checkpoint
    blocked  by the checkpoints of this work
    lost     after the last whole checkpoint: work and checkpoints that the next failure, or the end, undid

    Each attempt does these in turn, except that work and blocked alternate.
    """

    restart: Seconds
    work: Seconds
    blocked: Seconds
    lost: Seconds

    @property
    def seconds(self) -> Seconds:
        return self.restart + self.work + self.blocked + self.lost

    @property
    def goodput(self) -> float:
        return float(self.work.sum() / self.seconds.sum())

    @property
    def standard_error(self) -> float:
        """Of the goodput, from the spread of the attempts, which must be independent: exponential failures."""
        return float(np.linalg.norm(self.work - self.goodput * self.seconds) / self.seconds.sum())


def simulated(
    failures: Seconds,
    seconds: float,
    interval: float,
    cost: float,
    restart: float = 0.0,
    blocking: float | None = None,
) -> Attempts:
    """What a run of that length does if it fails at these times, in ascending order.

    Raises ValueError for times that are not in order or not within the run.
    """
    blocking = _blocking(cost, blocking)
    _check_interval(interval, cost, blocking)
    lasted = np.diff(failures, prepend=0.0, append=_positive("seconds", seconds))
    if not (lasted >= 0).all():
        raise ValueError(
            f"failures must be in ascending order, from 0 to seconds={seconds:g}: sort them, or cut them off"
        )
    restarting = np.minimum(lasted, real_number("restart", restart, at_least=0))
    restarting[0] = 0.0
    running = lasted - restarting
    saved = np.floor((running - interval - cost) / (interval + blocking)) + 1  # checkpoints that became whole
    saved = np.maximum(saved, 0.0)
    work, blocked = saved * interval, saved * blocking
    return Attempts(restarting, work, blocked, running - work - blocked)


def _positive(name: str, value: float) -> float:
    return real_number(name, value, above=0)


def _blocking(cost: float, blocking: float | None) -> float:
    _positive("cost", cost)
    return cost if blocking is None else real_number("blocking", blocking, at_least=0, at_most=cost)


def _check_interval(interval: float, cost: float, blocking: float) -> None:
    if _positive("interval", interval) < cost - blocking:
        raise ValueError(
            f"interval={interval:g}: the last checkpoint takes {cost - blocking:g} s to be written while training goes "
            "on, so give at least that"
        )
