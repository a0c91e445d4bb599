"""Spread over seeds: bootstrap intervals, the median time to a target that some runs miss, Pareto fronts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minidl.random import Purpose, stream

DRAWS, ENDS = 2000, (0.025, 0.975)


class Estimate(NamedTuple):
    """A statistic of several runs, and the ends of its confidence interval."""

    value: float
    low: float
    high: float


def estimate(statistic: Callable[..., Any], *samples: Sequence[float], seed: int = 0) -> Estimate:
    """Return a statistic of the runs with its bootstrap interval of 95 %, by percentiles.

    The runs are drawn with replacement, 2,000 times; the interval holds the middle 95 % of the statistics.

    Parameters
        statistic  function of arrays, over their last axis, such as `mean` or `median_time`
        samples    one value per run; with several, run i is the i-th value of each
        seed       seed of the draws: equal seeds give equal intervals

    Notes
        With few runs the interval is too short. For the mean of normal values, the interval holds the true
        mean in about 75 % of the cases with 3 runs, 85 % with 5, 91 % with 10 and 94 % with 20. It never reaches beyond
        the lowest and highest run.

    References
        B. Efron and R. J. Tibshirani, An introduction to the bootstrap (1993), section 13.3.

    >>> estimate(mean, [2.0, 4.0, 9.0])
    Estimate(value=5.0, low=2.0, high=9.0)
    """
    runs = [np.asarray(sample) for sample in samples]
    if not runs or len(runs[0]) == 0 or any(sample.shape != (len(runs[0]),) for sample in runs):
        raise ValueError(f"samples need one number per run, got shapes {[sample.shape for sample in runs]}")
    n = len(runs[0])
    drawn = stream(Purpose.BOOTSTRAP, seed, n).integers(n, size=(DRAWS, n))
    statistics = statistic(*(sample[drawn] for sample in runs))
    ends = np.quantile(statistics, ENDS, method="inverted_cdf")  # some may be infinite
    return Estimate(float(statistic(*runs)), *ends.tolist())


def mean(values: Any) -> Any:
    """The mean over the last axis."""
    return np.mean(values, axis=-1)


def median_time(seconds: Any, reached: Any) -> Any:
    """Return the median time to a target, over the last axis, where some runs were stopped before they reached it.

    seconds: of a run that reached the target, its time to it; of another one, how long it was trained, or infinity if
    it could never have reached the target. reached: whether it did.

    The result is infinite where the target is not reached by half of the runs. If all reach it, it is the usual median.
    The mean of those that reached it would favour a method that reaches it seldom, and then early.

    References
        E. L. Kaplan and P. Meier, Nonparametric estimation from incomplete observations (1958).

    >>> float(median_time([3.0, 5.0, 4.0, 9.0, 9.0], [True, True, True, False, False]))
    5.0
    """
    seconds, reached = np.asarray(seconds, float), np.asarray(reached, bool)
    order = np.lexsort((~reached, seconds), axis=-1)
    seconds, reached = (np.take_along_axis(one, order, axis=-1) for one in (seconds, reached))
    not_yet = np.cumprod(np.where(reached, 1 - 1 / np.arange(seconds.shape[-1], 0, -1), 1.0), axis=-1)
    near = 1e-9  # products of fractions are not exact
    halves = (np.where(reached & (not_yet <= half), seconds, np.inf).min(axis=-1) for half in (0.5 + near, 0.5 - near))
    return np.mean(list(halves), axis=0)  # the middle of two where exactly half have reached the target


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return which (cost, quality) points no other one beats: as cheap and as good, and better in one; by cost.

    >>> pareto_front([(3.0, 0.9), (1.0, 0.8), (2.0, 0.7), (4.0, 0.9)])
    [1, 0]
    """
    front: list[int] = []
    for i in sorted(range(len(points)), key=lambda i: (points[i][0], -points[i][1])):
        if not front or points[i][1] > points[front[-1]][1] or points[i] == points[front[-1]]:
            front.append(i)
    return front
