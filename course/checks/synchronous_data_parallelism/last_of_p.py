"""The expected time of the last of p workers, and what known mistakes give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, expect

Array = NDArray[np.float64]
RTOL = 1e-9
LARGE = 1e100


def harmonic(p: int) -> float:
    """1 + 1/2 + ... + 1/p."""
    return float(sum(1 / i for i in range(1, p + 1)))


def expected_last(times: Array, p: int) -> float:
    """The expectation of the greatest of p draws with replacement, by order statistics."""
    n = len(times)
    return float(sum(t * (((i + 1) ** p - i**p) / n**p) for i, t in enumerate(np.sort(times).tolist())))


def drawn_times(n: int, p: int, seed: int) -> Array:
    """n times, not sorted, of which a few are much longer than the others; the longest one comes twice if n > 2."""
    rng = np.random.default_rng((seed, n, p))
    times = np.round(rng.lognormal(0.0, 1.0, n) + 0.05, 3)
    if n > 2:
        times[np.argmin(times)] = times.max()
    return times


def uniform_times(n: int, seed: int) -> Array:
    """n times spread evenly over 0 to 1, not sorted: the expectation is close to p / (p + 1)."""
    return np.random.default_rng((seed, n)).permutation((np.arange(n) + 0.5) / n)


def judge_exponential(answer: Answer, mean: float, p: int) -> None:
    """The mean times H_p."""
    mistakes = {
        "The last worker counts, not the average one.": mean,
        "The workers work at the same time.": mean * p,
        "That is the sum to p - 1: for p workers 1 + 1/2 + ... + 1/p.": mean * harmonic(p - 1),
        "ln p is near the sum 1 + 1/2 + ... + 1/p for large p only.": mean * np.log(p),
        "ln p + 0.5772 is near the sum 1 + 1/2 + ... + 1/p for large p only.": mean * (np.log(p) + np.euler_gamma),
        "The mean is missing: this is the sum 1 + 1/2 + ... + 1/p alone.": harmonic(p),
        "That is the fastest of p workers.": mean / p,
        "That is the median, not the expectation.": -mean * np.log1p(-(0.5 ** (1 / p))),
    }
    judge(answer(mean, p), mean * harmonic(p), f"barrier_time({mean:g}, {p})", mistakes)


def judge_times(answer: Answer, times: Array, p: int) -> None:
    """The exact expectation for measured times."""
    n, ordered = len(times), np.sort(times)
    below, up_to = np.arange(n) / n, np.arange(1, n + 1) / n
    unsorted = float(np.sum(times * (up_to**p - below**p)))
    values = np.unique(times)
    once = float(np.sum(values * np.diff((np.arange(len(values) + 1) / len(values)) ** p)))
    # of p different times, the i-th is the last with probability comb(i, p - 1) / comb(n, p); from the last i down
    without = np.cumprod([p / n, *(np.arange(n, 1, -1) - p) / np.arange(n - 1, 0, -1)]) if p <= n else np.zeros(0)
    mistakes = {
        "The last worker counts, not the average one.": float(times.mean()),
        "The workers work at the same time.": float(times.mean() * p),
        "The sum 1 + 1/2 + ... + 1/p holds for exponentially distributed times only.": float(
            times.mean() * harmonic(p)
        ),
        "That is the longest time of all; the last of p workers is seldom that late.": float(ordered[-1]),
        "Sort the times first: the chances belong to the sorted list.": unsorted,
        "A time that was measured twice counts twice.": once,
        "That is the fastest of p workers.": float(np.sum(ordered[::-1] * (up_to**p - below**p))),
        "The draws are with replacement: two workers can take the same time.": float(np.sum(ordered[::-1] * without))
        if p <= n
        else np.nan,
        "That is the last of p - 1 workers.": expected_last(times, p - 1),
        "That is one measured time, the p / (p + 1) quantile; the expectation is asked.": float(
            np.quantile(times, p / (p + 1))
        ),
        "That is the median, not the expectation.": float(np.quantile(times, 0.5 ** (1 / p))),
        "With m times, (i/m)^p is the chance of the i-th time or a faster one; the differences of these count.": float(
            np.sum(ordered * up_to**p)
        ),
    }
    called = f"barrier_time(times, {p}), times = {np.array2string(times, threshold=10, edgeitems=3, separator=', ')}"
    judge(answer(times, p), expected_last(times, p), called, mistakes)


def judge(got: Any, want: float, called: str, mistakes: dict[str, float]) -> None:
    """Raise Wrong unless the number is right to nine digits."""
    known = {sentence: value for sentence, value in mistakes.items() if not np.isclose(value, want, rtol=RTOL)}
    if isinstance(got, (int, float)) and abs(got) < LARGE and RTOL < abs(got / want - 1) < 0.2:
        known.setdefault("Close: was it estimated by random numbers, or by an approximation? It is asked exactly.", got)
    expect.number(got, want, called, rtol=RTOL, atol=0.0, mistakes=known)


def cases_in(samples: Sequence[tuple[int, int]], seed: int) -> list[tuple[Array, int]]:
    """Measured times and numbers of workers."""
    return [(drawn_times(n, p, seed), p) for n, p in samples]
