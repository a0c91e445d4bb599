"""Clusters for `choose`: drawn so that each choice is right for some, clearly, and known mistakes choose wrongly."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from course.checks.asynchrony.cluster_times import MISTAKES, Times, choice, estimated, played
from course.judging import Answer, AnswerFailed, Wrong, expect
from course.plural import counted
from course.probes.asynchrony import Cluster
from minidl.random import Purpose, stream

REGRET = 0.10
"""A choice is right if it takes at most this share longer than the best one."""

CLEAR = 1.3
"""In each cluster one choice takes at least CLEAR times as long as the other, by the formulas."""

OF_EACH = 3
"""Clusters in which a choice is right, at least."""

DRAWS = 20_000

TELLS_APART = 2_000
"""Draws after which mistakes that choose alike for all clusters so far may do so for good."""

ALWAYS_SYNC, ALWAYS_ASYNC, CONTENTION, CHUNKS, NETWORK, PERSISTENT, RANDOM, MEAN, PENALTY, *OTHERS = MISTAKES
RING, DELAYS, OFTEN, QUEUE = OTHERS

CAUGHT = {
    "network": (ALWAYS_SYNC, ALWAYS_ASYNC, CONTENTION, CHUNKS, NETWORK, PERSISTENT, MEAN, RING, QUEUE),
    "stragglers": (ALWAYS_SYNC, ALWAYS_ASYNC, PERSISTENT, RANDOM, MEAN, PENALTY, DELAYS, OFTEN, QUEUE),
    "staleness": (ALWAYS_SYNC, ALWAYS_ASYNC, PERSISTENT, MEAN, PENALTY, QUEUE),
}
"""The mistakes that at least one cluster of a group catches. No cluster of the group catches another one."""


Choices = Callable[[str], list[Any]]
"""What the answer chooses for each cluster of a group."""


def draw(group: str, rng: np.random.Generator) -> Cluster:
    """A cluster of a group, with round numbers."""

    def between(low: float, high: float) -> float:
        return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.2g}")

    workers = int(rng.choice([4, 6, 8, 12, 16, 24]))
    seconds = between(0.02, 0.5)
    alpha, beta = ((50e-6, 8e-9), (20e-6, 0.8e-9), (5e-6, 0.08e-9))[int(rng.integers(3))]
    if group == "network" and rng.random() < 0.5:  # machines that are far apart: small messages, large latencies
        far, slowest = between(3e-3, 3e-2), between(2, 5)
        return Cluster(workers, seconds, 0.0, 1.0, slowest, int(between(1e3, 1e5)), far, beta, 0.0)
    if group == "network":
        return Cluster(workers, seconds, 0.0, 1.0, between(2, 5), int(between(1e6, 4e8)), alpha, beta, 0.0)
    nbytes = int(between(1e4, 1e5))
    penalty = between(0.02, 0.5) if group == "staleness" else between(0.5, 2.5) / workers
    if group == "staleness":
        return Cluster(workers, seconds, 0.0, 1.0, between(2, 6), nbytes, alpha, beta, penalty)
    is_random = rng.random() < 0.5
    share, factor = (between(0.01, 0.3), between(3, 10)) if is_random else (0.0, 1.0)
    slowest = 1.0 if is_random else between(1.2, 6)
    return Cluster(workers, seconds, share, factor, slowest, nbytes, alpha, beta, float(f"{penalty:.2g}"))


@cache
def clusters(group: str, seed: int) -> list[tuple[Cluster, Times]]:
    """The clusters of a group for a seed, each with its two times."""
    rng = stream(Purpose.MANUAL, seed, "clusters", group)
    missing, chosen = set(CAUGHT[group]), []
    count = {"synchronous": 0, "asynchronous": 0}
    alike = {sentence: "" for sentence in CAUGHT[group]}  # for each mistake, its wrong choices so far
    for number in range(DRAWS):
        told_apart = len(set(alike.values())) == len(alike) or number >= TELLS_APART
        if not missing and min(count.values()) >= OF_EACH and told_apart:
            return chosen
        cluster = draw(group, rng)
        times = estimated(cluster)
        right = choice(times)
        caught = {sentence for sentence, choose in MISTAKES.items() if choose(cluster) != right}
        tried = {sentence: signs + ("x" if sentence in caught else ".") for sentence, signs in alike.items()}
        tells_apart = len(set(tried.values())) > len(set(alike.values()))
        is_wanted = bool(caught & missing) or tells_apart or count[right] < OF_EACH
        if max(times) < CLEAR * min(times) or not is_wanted or caught - set(CAUGHT[group]):
            continue
        true = played(cluster, seed)
        if choice(true) == right and max(true) > (1 + 2 * REGRET) * min(true):
            chosen.append((cluster, true))
            missing -= caught
            alike = tried
            count[right] += 1
    raise RuntimeError(f"no clusters of the group {group!r} were found for seed {seed}: {missing} are not caught")


def choices(answer: Answer, seed: int) -> Choices:
    """The answer's choices for the clusters of a group; each is asked for once."""
    return cache(lambda group: [answer(cluster) for cluster, _ in clusters(group, seed)])


def judge(choices: Choices, group: str, seed: int) -> None:
    """Raise Wrong unless the choice for each cluster of a group is right."""
    chosen = choices(group)
    wrong: list[tuple[Cluster, Times, str]] = []
    for (cluster, times), got in zip(clusters(group, seed), chosen, strict=True):
        if got not in ("synchronous", "asynchronous"):
            raise Wrong(
                f"choose({cluster}): expected 'synchronous' or 'asynchronous', got {expect.shown(got)}.",
                expect.not_a_value(got),
            )
        if times[got == "asynchronous"] > (1 + REGRET) * min(times):
            wrong.append((cluster, times, got))
    if not wrong:
        return
    cluster, times, got = wrong[0]
    longer = times[got == "asynchronous"] / min(times)
    raise Wrong(
        f"choose({cluster}): {got!r} takes {longer:.2f} times as long to the target as the other choice. The regret is "
        f"more than {REGRET:.0%} for {len(wrong)} of {counted(len(chosen), 'cluster')} of this kind.",
        cause_of(choices, group, seed),
    )


def cause_of(choices: Choices, group: str, seed: int) -> str:
    """The known mistake that makes these choices: in all groups, or else in this one; "" if none does."""
    chosen = {group: choices(group)}
    with suppress(AnswerFailed):  # that is for the part of the group in which it fails
        chosen |= {each: choices(each) for each in CAUGHT}

    def agrees(choose: Callable[[Cluster], str], groups: Iterable[str]) -> bool:
        return all([choose(cluster) for cluster, _ in clusters(each, seed)] == chosen[each] for each in groups)

    for sentence, choose in MISTAKES.items():
        if agrees(choose, chosen):
            return sentence
    for sentence in CAUGHT[group]:
        if sentence not in (ALWAYS_SYNC, ALWAYS_ASYNC) and agrees(MISTAKES[sentence], [group]):
            return sentence
    right = [choice(times) for _, times in clusters(group, seed)]
    if all(one != other for one, other in zip(right, chosen[group], strict=True)):
        return "It is the other choice each time."
    return ""
