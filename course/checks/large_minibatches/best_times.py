"""Clusters for `best_batch`, the time to the target for every minibatch, and the choices of known mistakes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect
from course.plural import counted
from course.probes.large_minibatches import Cluster
from minidl.random import Purpose, stream

Array = NDArray[Any]

REGRET = 0.02
"""A minibatch is right if it takes at most this share longer to the target than the best one."""

CLEAR = 0.05
"""A cluster catches a known mistake if its choice takes longer than the best one by more than this share."""

AT_LEAST, DRAWS = 8, 5_000


def ring_seconds(cluster: Cluster) -> float:
    """The seconds of a ring all-reduce of the gradient."""
    p = cluster.nodes
    return 2 * (p - 1) * (cluster.alpha + cluster.nbytes / p * cluster.beta)


def seconds_to_target(cluster: Cluster, batch: Any) -> Any:
    """The seconds of S(B) steps, each with a gradient and an all-reduce; for one minibatch or an array of them."""
    steps = cluster.s_min * (1 + cluster.b_c / batch)
    return steps * (cluster.seconds_per_sample * batch / cluster.nodes + ring_seconds(cluster))


def allowed(cluster: Cluster) -> Array:
    """All minibatches that are allowed."""
    return cluster.nodes * np.arange(1, cluster.most_per_node + 1)


def best(cluster: Cluster) -> int:
    """The best minibatch, found by trying all of them."""
    batches = allowed(cluster)
    return int(batches[np.argmin(seconds_to_target(cluster, batches))])


def regret(cluster: Cluster, batch: int) -> float:
    """The share by which a minibatch takes longer than the best one."""
    return float(seconds_to_target(cluster, batch) / seconds_to_target(cluster, best(cluster)) - 1)


def stationary(cluster: Cluster, ring: float, p: float) -> float:
    """The minibatch at which the derivative of the time is 0."""
    return float((cluster.b_c * p * ring / cluster.seconds_per_sample) ** 0.5)


def nearest(cluster: Cluster, batch: float) -> int:
    """An allowed minibatch near a number."""
    return cluster.nodes * int(np.clip(round(batch / cluster.nodes), 1, cluster.most_per_node))


def of_stationary(**changes: Callable[[Cluster], float]) -> Callable[[Cluster], float]:
    """A known mistake: the minibatch at which the derivative is 0, with a wrong ring time or a wrong p."""

    def chosen(cluster: Cluster) -> float:
        ring = changes["ring"](cluster) if "ring" in changes else ring_seconds(cluster)
        p = changes["p"](cluster) if "p" in changes else cluster.nodes
        return nearest(cluster, stationary(cluster, ring, p))

    return chosen


MISTAKES: dict[str, Callable[[Cluster], float]] = {
    "The largest minibatch has the most samples a second, but most of them are wasted above B_c.": lambda c: (
        c.nodes * c.most_per_node
    ),
    "The smallest minibatch needs the fewest samples, but it pays for an all-reduce after each few.": lambda c: c.nodes,
    "B_c is where the target takes twice the fewest samples and twice the fewest steps. What steps cost on this "
    "cluster is not in it.": lambda c: nearest(c, c.b_c),
    "Here an all-reduce takes as long as the gradient. That minimum would not depend on B_c.": lambda c: nearest(
        c, c.nodes * ring_seconds(c) / c.seconds_per_sample
    ),
    "A node computes B / p samples, not B: p is missing under the root.": of_stationary(p=lambda c: 1),
    "alpha was left out: the ring sends 2 (p - 1) messages.": of_stationary(
        ring=lambda c: 2 * (c.nodes - 1) * c.nbytes / c.nodes * c.beta
    ),
    "beta was left out: the ring sends the gradient's bytes, too.": of_stationary(
        ring=lambda c: 2 * (c.nodes - 1) * c.alpha
    ),
    "Each message of the ring has nbytes / p bytes, not nbytes.": of_stationary(
        ring=lambda c: 2 * (c.nodes - 1) * (c.alpha + c.nbytes * c.beta)
    ),
    "The samples of one node were returned: B has those of all nodes.": lambda c: best(c) // c.nodes,
    "Only minibatches up to a fixed number of samples a node were tried: go up to most_per_node.": lambda c: min(
        best(c), c.nodes * 1000
    ),
}

ROUNDED: dict[str, Callable[[Cluster], float]] = {
    "The best minibatch was rounded down to a multiple of p; the next multiple takes less time.": lambda c: (
        c.nodes * int(np.clip(stationary(c, ring_seconds(c), c.nodes) // c.nodes, 1, c.most_per_node))
    ),
    "The best minibatch was rounded up to a multiple of p; the multiple below takes less time.": lambda c: (
        c.nodes * int(np.clip(-(-stationary(c, ring_seconds(c), c.nodes) // c.nodes), 1, c.most_per_node))
    ),
}
"""Mistakes that matter where the best minibatch has one or two samples a node."""


def is_allowed(cluster: Cluster, batch: float) -> bool:
    return batch % cluster.nodes == 0 and cluster.nodes <= batch <= cluster.nodes * cluster.most_per_node


def draw(rng: np.random.Generator) -> Cluster:
    """A cluster with round numbers."""

    def between(low: float, high: float) -> float:
        return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.2g}")

    alpha, beta = ((50e-6, 8e-9), (20e-6, 0.8e-9), (5e-6, 0.08e-9), (5e-3, 0.08e-9))[int(rng.integers(4))]
    return Cluster(
        nodes=int(rng.choice([2, 4, 6, 8, 12, 16, 32])),
        seconds_per_sample=between(1e-4, 5e-2),
        nbytes=int(between(1e5, 4e8)),
        alpha=alpha,
        beta=beta,
        s_min=int(between(300, 30_000)),
        b_c=between(20, 20_000),
        most_per_node=int(between(200, 20_000)),
    )


@cache
def clusters(seed: int) -> list[Cluster]:
    """Clusters whose best minibatch is at no limit. Each known mistake takes clearly longer on at least one of them."""
    rng = stream(Purpose.MANUAL, seed, "clusters for a minibatch")
    missing, chosen = set(MISTAKES), []
    for _ in range(DRAWS):
        if not missing and len(chosen) >= AT_LEAST:
            return chosen
        cluster = draw(rng)
        caught = {
            sentence
            for sentence in missing
            if not is_allowed(cluster, batch := MISTAKES[sentence](cluster)) or regret(cluster, int(batch)) > CLEAR
        }
        if cluster.nodes < best(cluster) < cluster.nodes * cluster.most_per_node and (caught or not missing):
            chosen.append(cluster)
            missing -= caught
    raise RuntimeError(f"no clusters were found for seed {seed}: {missing} are not caught")


@cache
def corners(seed: int) -> list[Cluster]:
    """Clusters whose best minibatch is at a limit: one node, a free network, little memory, a tiny B_c."""
    rng = stream(Purpose.MANUAL, seed, "corners")
    p, nbytes, many = int(rng.choice([4, 6, 8])), int(rng.integers(1, 9)) * 10**7, int(rng.integers(40, 90)) * 10
    slow = {"nbytes": nbytes, "alpha": 5e-5, "beta": 8e-9, "s_min": 1000}
    found = [
        Cluster(1, 0.002, **slow, b_c=500.0, most_per_node=many),
        Cluster(p, 0.003, nbytes, 0.0, 0.0, 2000, 300.0, many),
        Cluster(p, 0.0004, **slow, b_c=9000.0, most_per_node=int(rng.integers(5, 30))),
        Cluster(4 * p, 0.0005, **slow, b_c=6000.0, most_per_node=1),
        Cluster(16 * p, 0.5, 4000, 1e-5, 8e-10, 5000, float(rng.integers(2, 6)), many),
    ]
    return [*found, rounded(rng, 1.8), rounded(rng, 1.1), rounded(rng, 4.3)]


def rounded(rng: np.random.Generator, samples: float) -> Cluster:
    """A cluster whose best minibatch has few samples a node; `samples` is where the derivative is 0."""
    p, ring = int(rng.choice([8, 16])), float(rng.integers(2, 9)) / 1000
    return Cluster(
        p, float(f"{ring / samples:.3g}"), 0, float(f"{ring / (2 * (p - 1)):.3g}"), 1e-10, 3000, samples * p, 500
    )


def asked(answer: Answer, cluster: Cluster) -> int:
    """The minibatch that the answer returns; Wrong if it is not allowed."""
    got = answer(cluster)
    called, p = f"best_batch({cluster})", cluster.nodes
    if isinstance(got, bool) or not isinstance(got, int | float | np.integer | np.floating):
        raise Wrong(f"{called}: expected a whole number, got {expect.shown(got)}.", expect.not_a_value(got))
    if got != got or not is_allowed(cluster, got):
        cause = ""
        if got > p * cluster.most_per_node:
            cause = f"A node has memory for {counted(cluster.most_per_node, 'sample')}."
        elif got == best(cluster) // p:
            cause = "The samples of one node were returned: B has those of all nodes."
        elif got % p:
            cause = "Each node has the same number of samples."
        raise Wrong(
            f"{called}: expected a multiple of {p} from {p} to {p * cluster.most_per_node}, got {expect.shown(got)}.",
            cause,
        )
    return int(got)


def judge(answer: Answer, group: list[Cluster]) -> None:
    """Raise Wrong unless the regret is small on all clusters of a group."""
    chosen = [asked(answer, cluster) for cluster in group]
    worst = max(range(len(group)), key=lambda i: regret(group[i], chosen[i]))
    if regret(group[worst], chosen[worst]) <= REGRET:
        return
    cluster, got = group[worst], chosen[worst]
    longer = seconds_to_target(cluster, got) / seconds_to_target(cluster, best(cluster))
    causes = [
        sentence
        for sentence, choose in (MISTAKES | ROUNDED).items()
        if all(choose(each) == batch for each, batch in zip(group, chosen, strict=True))
    ]
    cause = causes[0] if len(causes) == 1 else ""
    late = sum(regret(each, batch) > REGRET for each, batch in zip(group, chosen, strict=True))
    raise Wrong(
        f"best_batch({cluster}): with B = {got} the target takes {longer:.4g} times as long as with the best one. "
        f"The regret is more than {REGRET:.0%} on {late} "
        f"of {counted(len(group), 'cluster')} of this kind.",
        cause,
    )
