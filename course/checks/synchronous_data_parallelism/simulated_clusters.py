"""The scaling efficiency of a simulated cluster, and what known mistakes predict for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from course.judging import Answer, expect
from course.judging.wrong import Wrong
from minidl import cluster

ITEMSIZE = 4
TOLERANCE = 0.1
SAME = 1e-6


class Cluster(NamedTuple):
    """The arguments of `efficiency`."""

    p: int
    batch_size: int
    flops: float
    flops_per_s: float
    nbytes: float
    alpha: float
    beta: float
    buckets: int = 1
    strong: bool = False

    @property
    def called(self) -> str:
        """The call, for messages."""
        named = ", ".join(f"{name}={value:.4g}" for name, value in zip(self._fields[1:7], self[1:7], strict=True))
        return f"efficiency({self.p}, {named}, buckets={self.buckets}, strong={self.strong})"

    def samples(self, p: int) -> int:
        """The samples of the slowest of p nodes."""
        return -(-self.batch_size // p) if self.strong else self.batch_size


def one_step(comm: cluster.Communicator, forward: float, backward: float, nbytes: float, buckets: int) -> None:
    """A node's program: forward, then backward, which starts the all-reduce of each bucket as soon as it is full."""
    comm.compute(seconds=forward)
    in_flight = []
    for _ in range(buckets):
        comm.compute(seconds=backward / buckets)
        bucket = cluster.Phantom(int(nbytes / buckets / ITEMSIZE) * ITEMSIZE, np.float32)
        in_flight.append(comm.all_reduce(bucket, algorithm="ring", async_op=True))
    for work in in_flight:
        work.wait()


@lru_cache(maxsize=256)
def step_seconds(one: Cluster, p: int) -> float:
    """The simulated seconds of a step on p nodes of this cluster."""
    computing = one.samples(p) * one.flops / one.flops_per_s
    network = cluster.Simulation(cluster.Network(one.alpha, one.beta), trace="ledger")
    arguments = (computing / 3, computing * 2 / 3, one.nbytes, one.buckets)
    return cluster.launch(one_step, args=arguments, nodes=p, on=network).seconds


def simulated(one: Cluster) -> float:
    """The scaling efficiency: samples per second of p simulated nodes, divided by p times those of one node."""
    own = one.p if one.strong else 1
    return step_seconds(one, 1) / (own * step_seconds(one, one.p))


def judge(answer: Answer, one: Cluster) -> None:
    """Raise Wrong unless the answer's prediction is within TOLERANCE of the simulation."""
    want, got = simulated(one), predicted(answer, one)
    if abs(got - want) <= TOLERANCE * want:
        return
    causes = [sentence for sentence, wrong in mistakes(one).items() if math.isclose(got, wrong, rel_tol=SAME)]
    raise Wrong(
        f"{one.called}: the simulated cluster has {want:.4g}, got {got:.4g}, which is more than {TOLERANCE:.0%} off.",
        causes[0] if causes else "",
    )


def judge_one_node(answer: Answer, one: Cluster) -> None:
    """Raise Wrong unless the efficiency of one node is 1."""
    alone = one._replace(p=1)
    got = predicted(answer, alone)
    if abs(got - 1) > SAME:
        cause = "A single node sends nothing: a ring of p nodes has 2(p - 1) messages." if got < 1 else ""
        cause = "The efficiency is a fraction, not in percent." if abs(got - 100) <= 100 * SAME else cause
        raise Wrong(f"{alone.called}: expected 1, got {got:.6g}.", cause)


def predicted(answer: Answer, one: Cluster) -> float:
    """The number that the answer returns. Raises Wrong if it returns none."""
    got = expect.number_array(answer(*one), one.called, "a number")
    if got.ndim != 0 or got.dtype.kind == "c" or not math.isfinite(got.item()):
        raise Wrong(f"{one.called}: expected a number, got {expect.shown(got if got.ndim else got.item())}.")
    return float(got.item())


Seconds = Callable[[int, float], float]
"""seconds(p, samples): the time of a step on p nodes, the slowest of which has `samples` samples."""


def mistakes(one: Cluster) -> dict[str, float]:
    """For each known mistake, a sentence and the efficiency that it predicts."""
    p, n, k, alpha, beta = one.p, one.nbytes, one.buckets, one.alpha, one.beta

    def step(reducing: Callable[[int], float], whole: Callable[[float, float], float] | None = None) -> Seconds:
        def seconds(p: int, samples: float) -> float:
            computing, c = samples * one.flops / one.flops_per_s, reducing(p)
            if whole is not None:
                return whole(computing, c)
            backward = computing * 2 / 3
            return computing / 3 + max(backward + c, backward / k + k * c)

        return seconds

    def of(seconds: Seconds) -> float:
        return seconds(1, one.samples(1)) / ((p if one.strong else 1) * seconds(p, one.samples(p)))

    def ring(p: int) -> float:
        return 2 * (p - 1) * (alpha + n / k / p * beta)

    right = of(step(ring))
    whole_vectors = "Each of the 2(p - 1) messages has a p-th of the bucket, not all of it."
    shared = of(step(lambda p: 2 * (p - 1) * alpha + (2 * n / k * beta if p > 1 else 0.0)))
    found = {
        "The ring moves 2(p - 1)/p of the bytes; here (p - 1)/p is missing.": shared,
        whole_vectors: of(step(lambda p: 2 * (p - 1) * (alpha + n / k * beta))),
        "These are p - 1 messages: after the reduce-scatter there is the all-gather.": of(
            step(lambda p: (p - 1) * (alpha + n / k / p * beta))
        ),
        "A ring has 2(p - 1) messages, one after the other, not 2p.": of(
            step(lambda p: 2 * p * (alpha + n / k / p * beta))
        ),
        "alpha was counted twice: a node sends and receives at the same time.": of(
            step(lambda p: ring(p) + 2 * (p - 1) * alpha)
        ),
        "A node sends and receives at the same time: a message takes its time once.": of(step(lambda p: 2 * ring(p))),
        "alpha is paid in each of the 2(p - 1) messages, not once.": of(
            step(lambda p: 2 * (p - 1) / p * n / k * beta + (alpha if p > 1 else 0.0))
        ),
        "alpha is missing: each of the 2(p - 1) messages costs it.": of(step(lambda p: 2 * (p - 1) / p * n / k * beta)),
        "Every bucket pays its own 2(p - 1) start-ups.": of(
            step(lambda p: 2 * (p - 1) * (alpha / k + n / k / p * beta))
        ),
        "beta is seconds a byte, not a bit.": of(step(lambda p: 2 * (p - 1) * (alpha + n / k / p * beta * 8))),
        "With overlap the longer of the two counts, not the sum of both.": of(
            step(ring, lambda computing, c: computing + k * c)
        ),
        "The last bucket is full when backward ends: its all-reduce cannot be hidden.": of(
            step(ring, lambda computing, c: computing / 3 + max(computing * 2 / 3, k * c))
        ),
        "No bucket is full during forward: only backward hides communication.": of(
            step(ring, lambda computing, c: max(computing, k * c))
        ),
        "The all-reduces run one after the other, and the first one starts when its bucket is full.": of(
            step(ring, lambda computing, c: computing + c)
        ),
        "Where the network is fast enough, backward is the longer of the two; only the last all-reduce follows it.": of(
            step(ring, lambda computing, c: computing / 3 + computing * 2 / 3 / k + k * c if c else computing)
        ),
        "Backward has two thirds of the operations, and forward has one.": of(
            step(ring, lambda computing, c: computing / 2 + max(computing / 2 + c, computing / 2 / k + k * c))
        ),
        "This is the speed-up: divide by p.": p * right,
        "This is the inverse.": 1 / right,
        "This is the efficiency of weak scaling, not of strong scaling.": (
            step(ring)(1, one.batch_size) / step(ring)(p, one.batch_size)
        ),
        "In strong scaling p nodes should take a p-th of the time of one node.": p * right if one.strong else math.nan,
        "Samples are whole: the slowest node has batch_size / p of them, rounded up.": (
            step(ring)(1, one.batch_size) / (p * step(ring)(p, one.batch_size / p)) if one.strong else math.nan
        ),
    }
    return {sentence: value for sentence, value in found.items() if not math.isclose(value, right, rel_tol=SAME)}


def clusters(cases: Any, *, strong: bool = False) -> list[Cluster]:
    """The cases as clusters, the largest first: the more nodes, the more the mistakes differ."""
    return sorted((Cluster(*case)._replace(strong=strong) for case in cases), reverse=True)
