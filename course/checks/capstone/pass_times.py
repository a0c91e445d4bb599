"""The seconds of a pass with an all-reduce after every few steps, and its known mistakes."""

from __future__ import annotations

from dataclasses import replace

from course.judging import Answer, expect
from course.probes.capstone import SAMPLES, Cluster, drawn
from minidl.random import Purpose, stream

Case = tuple[int, int, int, int]
"""Machines of the cluster, how many of them are chosen, the minibatch, and the period."""


def seconds(cluster: Cluster, ranks: list[int], size: float, period: float) -> float:
    """The right result."""
    return costs(cluster, ranks, size, period)[0]


def costs(cluster: Cluster, ranks: list[int], size: float, period: float) -> tuple[float, dict[str, float]]:
    """The right result, and wrong ones by a sentence that says what is right."""
    p, factor = len(ranks), cluster.slow[1]
    slowest = factor if cluster.slow[0] in ranks else 1.0
    healthy = SAMPLES / p * cluster.sample_seconds
    messages = SAMPLES / size / period * 2 * (p - 1)
    latency, transfer = messages * cluster.alpha, messages * cluster.nbytes / p * cluster.beta
    compute, ring = healthy * slowest, latency + transfer
    return compute + ring, {
        "The slow machine is among the chosen ones, and all wait for it.": healthy + ring,
        "The slow machine is not among the chosen ones.": healthy * factor + ring,
        "A step waits for the slowest machine, not for the mean of all.": healthy * (p - 1 + slowest) / p + ring,
        "The minibatch is divided among the chosen machines.": p * compute + ring,
        "Machines that were not chosen compute nothing.": p / cluster.workers * compute + ring,
        "A message of the ring has nbytes / p bytes.": compute + latency + p * transfer,
        "A ring has 2 (p - 1) messages, (p - 1) for the sums and (p - 1) to gather them.": compute + ring / 2,
        "Each message takes alpha, too.": compute + transfer,
        "Between two all-reduces are `period` steps.": compute + period * ring,
        "These are the seconds of a step; a pass has many.": (compute + ring) * size / SAMPLES,
    }


def compare(answer: Answer, case: Case, seed: int, are_messages_free: bool = False) -> None:
    """Raise Wrong unless the answer is right with the slow machine and, where it can be left out, without it."""
    workers, chosen, size, period = case
    rng = stream(Purpose.MANUAL, seed, "pass", *case)
    slow = int(rng.integers(workers))
    cluster = drawn((seed, period), (0.5, 20.0))
    alpha, beta = (0.0, 0.0) if are_messages_free else (1e3 * cluster.alpha, cluster.beta)
    factor = float(f"{rng.uniform(2, 4):.3g}")
    cluster = replace(cluster, workers=workers, slow=(slow, factor), alpha=alpha, beta=beta)
    others = [int(machine) for machine in rng.permutation([each for each in range(workers) if each != slow])]
    for ranks in ([slow, *others][:chosen], others[:chosen]):
        want, wrong = costs(cluster, ranks, size, period)
        known = {why: number for why, number in wrong.items() if abs(number / want - 1) > 1e-6}
        called = f"pass_seconds({cluster}, {ranks}, {size}, {period})"
        expect.number(answer(cluster, ranks, size, period), want, called, rtol=1e-9, mistakes=known)
