"""Draws clusters for `choose`: each choice is clearly right for some, and every known mistake shows on one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from course.checks.asynchrony.cluster_times import SLIPS, Times, asynchronous_played, choice, estimated
from course.judging import Answer, Wrong, expect
from course.probes.asynchrony import Cluster
from minidl.random import Purpose, stream

TOLERANCE = 0.05
"""A time is right if it differs by at most this share."""

REGRET = 0.10
"""A choice is right if it takes at most this share longer than the best one."""

CLEAR = 1.3
"""On every cluster the wrong choice takes at least CLEAR times as long as the right one."""

OF_EACH = 3
"""Each choice is right on at least this many clusters of a group."""

DRAWS = 20_000

NETWORK = {"no queue", "exchange beside", "one message", "no alpha", "no network", "no ring", "one way",
           "whole vectors"}  # fmt: skip
ALWAYS = {"queue adds", "a step is a gradient", "mean", "no persistent", "fast straggler"}

FOUND = {
    "network": ALWAYS | NETWORK,
    "stragglers": ALWAYS | {"no random", "delays of others", "often", "no penalty", "own"},
    "staleness": ALWAYS | {"no penalty", "own"},
}
"""For each group, the mistakes that give a wrong time on one of its clusters; no others do on any of them."""

Predicted = tuple[Any, Any, Any]
Predictions = Callable[[str], list[Predicted]]
"""Maps the name of a group to what the answer returns for each of its clusters."""


def draw(group: str, rng: np.random.Generator) -> Cluster:
    """A random cluster for a group; its numbers have two digits."""

    def between(low: float, high: float) -> float:
        return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.2g}")

    gradients, workers = int(between(1e4, 1e6)), int(rng.choice([4, 6, 8, 12, 16, 24]))
    seconds = between(0.02, 0.5)
    alpha, beta = ((53e-6, 8.1e-9), (21e-6, 0.83e-9), (5.2e-6, 0.081e-9))[int(rng.integers(3))]
    if group == "network":  # half of the clusters have large latencies and small messages
        is_far = rng.random() < 0.5
        alpha, nbytes = (between(3e-3, 3e-2), between(1e3, 1e5)) if is_far else (alpha, between(1e6, 4e8))
        return Cluster(gradients, workers, seconds, 0.0, 1.0, between(2, 5), int(nbytes), alpha, beta, 0.0)
    nbytes = int(between(1e3, 1e4))
    if group == "staleness":
        return Cluster(gradients, workers, seconds, 0.0, 1.0, between(2, 6), nbytes, alpha, beta, between(0.02, 0.5))
    penalty = between(0.5 / workers, 2.5 / workers)
    is_random = rng.random() < 0.5
    share, factor = (between(0.01, 0.3), between(3, 10)) if is_random else (0.0, 1.0)
    slowest = 1.0 if is_random else between(1.2, 6)
    return Cluster(gradients, workers, seconds, share, factor, slowest, nbytes, alpha, beta, penalty)


def is_off(times: Times, right: Times, tolerance: float = TOLERANCE) -> bool:
    """Whether one of the two times differs from the right one by more than the tolerance."""
    return any(abs(time - true) > tolerance * true for time, true in zip(times, right, strict=True))


@cache
def clusters(group: str, seed: int) -> list[tuple[Cluster, Times]]:
    """The clusters of a group for a seed, each with its two right times."""
    rng = stream(Purpose.MANUAL, seed, "clusters", group)
    missing, chosen = set(FOUND[group]), []
    count = {"synchronous": 0, "asynchronous": 0}
    for _ in range(DRAWS):
        if not missing and min(count.values()) >= OF_EACH:
            return chosen
        cluster = draw(group, rng)
        times = estimated(cluster)
        right = choice(times)
        off = {slip for slip in SLIPS if is_off(estimated(cluster, slip), times)}
        found = {slip for slip in off if is_off(estimated(cluster, slip), times, 2 * TOLERANCE)}
        is_wanted = found & missing or count[right] < OF_EACH
        if max(times) < CLEAR * min(times) or not is_wanted or off - FOUND[group]:
            continue
        if abs(asynchronous_played(cluster, seed) - times[1]) <= TOLERANCE / 2 * times[1]:
            chosen.append((cluster, times))
            missing -= found
            count[right] += 1
    raise RuntimeError(f"no clusters of the group {group!r} were found for seed {seed}: {missing} are not found")


def predictions(answer: Answer, seed: int) -> Predictions:
    """The answer's times and choices, by group; the answer is called once for each cluster."""
    return cache(lambda group: [returned(answer, cluster) for cluster, _ in clusters(group, seed)])


def returned(answer: Answer, cluster: Cluster) -> Predicted:
    """The two times and the choice that the answer returns for a cluster."""
    wanted = "(synchronous, asynchronous, choice)"
    synchronous, asynchronous, choice = expect.listed(answer(cluster), f"choose({cluster})", wanted, 3)
    return synchronous, asynchronous, choice


def judge(predictions: Predictions, group: str, seed: int) -> None:
    """Raise Wrong unless both times and the choice for each cluster of a group are right."""
    got, those = predictions(group), clusters(group, seed)
    cause = cause_of(got, [cluster for cluster, _ in those])
    for (cluster, times), each in zip(those, got, strict=True):
        for name, time, want in zip(("synchronous", "asynchronous"), each[:2], times, strict=True):
            expect.number(
                time, want, f"choose({cluster}): seconds of {name} training", rtol=TOLERANCE,
                mistakes={cause: time} if cause else None,
            )  # fmt: skip
    for (cluster, times), (*_, chosen) in zip(those, got, strict=True):
        if chosen not in ("synchronous", "asynchronous"):
            raise Wrong(
                f"choose({cluster}): expected 'synchronous' or 'asynchronous' as the choice, got "
                f"{expect.shown(chosen)}.",
                expect.not_a_value(chosen),
            )
        longer = times[chosen == "asynchronous"] / min(times)
        expect.true(
            longer <= 1 + REGRET,
            f"choose({cluster}): {chosen!r} takes {longer:.2f} times as long to the target as the other choice; the "
            f"regret may be {REGRET:.0%}.",
            "The shorter of the two times decides.",
        )


def cause_of(got: list[Predicted], those: list[Cluster]) -> str:
    """The explanation of the mistake that gives both times for all clusters; "" if none does."""
    try:
        numbers = np.array([each[:2] for each in got], dtype=float)
    except (TypeError, ValueError):
        return ""
    for slip, sentence in SLIPS.items():
        if np.allclose(numbers, [estimated(cluster, slip) for cluster in those], rtol=1e-6):
            return sentence
    return ""
