"""The seconds of a pass with an all-reduce after every few steps, and its known mistakes."""

from __future__ import annotations

from dataclasses import replace

from course.judging import Answer, expect
from course.probes.capstone import SAMPLES, Cluster, drawn
from minidl.random import Purpose, stream

Case = tuple[int, int, int, int]
"""Machines of the cluster, how many of them are chosen, the minibatch, and the period."""


def seconds(cluster: Cluster, ranks: list[int], size: float, period: float, messages: float = 1.0) -> float:
    """The right result for messages = 1."""
    p = len(ranks)
    slowest = cluster.slow[1] if cluster.slow[0] in ranks else 1.0
    chunk = cluster.nbytes / p
    ring = 2 * (p - 1) * (cluster.alpha + chunk * cluster.beta)
    return SAMPLES / size * (size / p * cluster.sample_seconds * slowest + messages * ring / period)


def mistakes(cluster: Cluster, ranks: list[int], size: int, period: int) -> dict[str, float]:
    """By sentence."""
    p, factor = len(ranks), cluster.slow[1]
    healthy, mean = replace(cluster, slow=(-1, 1.0)), (p - 1 + factor) / p
    ring = SAMPLES / size / period * 2 * (p - 1)
    right = seconds(cluster, ranks, size, period)
    return {
        "The slow machine is among the chosen ones, and all wait for it.": seconds(healthy, ranks, size, period),
        "The slow machine is not among the chosen ones.": seconds(
            replace(cluster, slow=(ranks[0], factor)), ranks, size, period
        ),
        "A step waits for the slowest machine, not for the mean of all.": seconds(
            replace(cluster, slow=(cluster.slow[0], mean)), ranks, size, period
        ),
        "The minibatch is divided among the chosen machines.": right
        + SAMPLES * (1 - 1 / p) * cluster.sample_seconds * (factor if cluster.slow[0] in ranks else 1.0),
        "Machines that were not chosen compute nothing.": seconds(
            cluster, ranks, size, period
        ) + SAMPLES * (1 / cluster.workers - 1 / p) * cluster.sample_seconds * (
            factor if cluster.slow[0] in ranks else 1.0
        ),
        "A message of the ring has nbytes / p bytes.": right + ring * cluster.nbytes * (1 - 1 / p) * cluster.beta,
        "A ring has 2 (p - 1) messages, (p - 1) for the sums and (p - 1) to gather them.": seconds(
            cluster, ranks, size, period, 0.5
        ),
        "Each message takes alpha, too.": right - ring * cluster.alpha,
        "Between two all-reduces are `period` steps.": seconds(cluster, ranks, size, 1),
        "These are the seconds of a step; a pass has many.": right * size / SAMPLES,
    }  # fmt: skip


def compare(answer: Answer, case: Case, seed: int, are_messages_free: bool = False) -> None:
    """Raise Wrong unless the answer is right with the slow machine and, where it can be left out, without it."""
    workers, chosen, size, period = case
    rng = stream(Purpose.MANUAL, seed, "pass", *case)
    slow = int(rng.integers(workers))
    cluster = replace(
        drawn((seed, period), (0.5, 20.0)), workers=workers, slow=(slow, float(f"{rng.uniform(2, 4):.3g}"))
    )
    cluster = (
        replace(cluster, alpha=0.0, beta=0.0) if are_messages_free else replace(cluster, alpha=cluster.alpha * 1e3)
    )
    others = [int(machine) for machine in rng.permutation([each for each in range(workers) if each != slow])]
    for ranks in ([slow, *others][:chosen], others[:chosen]):
        want = seconds(cluster, ranks, size, period)
        known = {
            why: wrong for why, wrong in mistakes(cluster, ranks, size, period).items() if abs(wrong / want - 1) > 1e-6
        }
        called = f"pass_seconds({cluster}, {ranks}, {size}, {period})"
        expect.number(answer(cluster, ranks, size, period), want, called, rtol=1e-9, mistakes=known)
