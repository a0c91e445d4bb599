"""The seconds of a step with dp, pp and tp in closed form, and what known mistakes give."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from course.judging import Answer, expect
from course.probes.putting_it_together import Cluster, Model
from minidl.random import Purpose, stream

Plan = tuple[int, int, int, int]
"""(dp, pp, tp, samples of a micro-batch)"""

Case = tuple[int, int, int, int, int, int, int, int]
"""(dp, pp, tp, samples of a micro-batch, micro-batches, layers of a stage, heads of a shard, ranks of a node)"""

NAMES = ("compute", "tensor", "handover", "bubble", "data")


def ring(q: float, nbytes: float, link: tuple[float, float]) -> float:
    """Seconds of a ring all-reduce of nbytes over q ranks."""
    return 2 * (q - 1) * (link[0] + nbytes / q * link[1])


def link(cluster: Cluster, distance: int, size: int) -> tuple[float, float]:
    """The link of a group of `size` ranks that are `distance` apart."""
    return cluster.inside if cluster.per_node % (distance * size) == 0 else cluster.between


def terms(plan: Plan, batch: int, model: Model, cluster: Cluster) -> dict[str, float]:
    """The oracle: seconds of a step, by what takes them."""
    dp, pp, tp, b = plan
    m, layers = batch // (dp * b), model.layers // pp
    weights, nbytes = layers * 12 * model.width**2 / tp, 2 * b * model.context * model.width
    compute = 3 * 2 * weights * b * model.context / cluster.flops
    tensor = 4 * layers * ring(tp, nbytes, link(cluster, 1, tp))
    alpha, beta = link(cluster, tp, pp)
    handover = 2 * (alpha + nbytes * beta) if pp > 1 else 0.0
    data = ring(dp, 2 * weights, link(cluster, tp * pp, dp))
    return {
        "compute": m * compute,
        "tensor": m * tensor,
        "handover": m * handover,
        "bubble": (pp - 1) * (compute + tensor + handover),
        "data": data,
    }


def seconds(plan: Plan, batch: int, model: Model, cluster: Cluster) -> float:
    return sum(terms(plan, batch, model, cluster).values())


def mistaken(plan: Plan, batch: int, model: Model, cluster: Cluster) -> dict[str, dict[str, float]]:
    """For each term, what known mistakes give."""
    dp, pp, tp, b = plan
    right = terms(plan, batch, model, cluster)
    m, L = batch // (dp * b), model.layers
    weights, nbytes = L // pp * 12 * model.width**2 / tp, 2 * b * model.context * model.width
    busy, whole = right["compute"] + right["tensor"] + right["handover"], sum(right.values())
    rows, column, replicas = link(cluster, 1, tp), link(cluster, tp, pp), link(cluster, tp * pp, dp)
    layers = 4 * m * L // pp
    other = {cluster.inside: cluster.between, cluster.between: cluster.inside}
    wrong_link = (
        "Which link does this group use? The ranks of a tp group are neighbours, those of a pipeline are tp apart, "
        "those of a dp group pp tp apart."
    )
    return {
        "compute": {
            "Backward takes twice as long as forward: both together are three times forward.": right["compute"] / 3,
            "Backward takes twice as long as forward.": right["compute"] * 2 / 3,
            "A product with a weight is a multiplication and an addition: 2 operations.": right["compute"] / 2,
            "A step has m micro-batches.": right["compute"] / m,
            "A replica computes its own share of the minibatch.": right["compute"] * dp,
            "A stage has L / pp layers.": right["compute"] * pp,
            "A rank has its share of each layer, 1 / tp.": right["compute"] * tp,
            "Each token of a sample is computed.": right["compute"] / model.context,
        },
        "tensor": {
            "There are two all-reduces in backward, too.": right["tensor"] / 2,
            "There are two all-reduces in forward and two in backward, four for each layer.": right["tensor"] / 4,
            "A stage has L / pp layers.": right["tensor"] * pp,
            "There are all-reduces for each micro-batch.": right["tensor"] / m,
            "There are all-reduces for each layer.": right["tensor"] / (L // pp),
            "An all-reduce is of the activations of a micro-batch, not of the whole share.": layers / m
            * ring(tp, m * nbytes, rows),
            "Each of the 2 (q - 1) messages has nbytes / q bytes.": layers * 2 * (tp - 1) * (
                rows[0] + nbytes * rows[1]
            ),
            "2 (q - 1), not 2 q: nothing is sent to oneself.": layers * 2 * tp * (rows[0] + nbytes / tp * rows[1]),
            "alpha is the time of each message, not of the whole all-reduce.": layers * (
                rows[0] + 2 * (tp - 1) * nbytes / tp * rows[1]
            ),
            "A number has 2 bytes.": layers * ring(tp, 2 * nbytes, rows),
            "An all-reduce is of b s h numbers of 2 bytes: these are the bytes of b s h / 2.": layers
            * ring(tp, nbytes / 2, rows),
            "Every token has h numbers.": layers * ring(tp, nbytes / model.width, rows),
            "An all-reduce over tp is of activations, not of gradients.": layers * ring(tp, 2 * weights, rows),
            wrong_link: layers * ring(tp, nbytes, other[rows]),
        },
        "handover": {
            "The gradients are handed over, too, in backward.": right["handover"] / 2,
            "Every micro-batch is handed over.": right["handover"] / m,
            "This is what all borders of the pipeline take together; they are used at the same time.": right["handover"]
            * (pp - 1),
            "Every rank sends the whole activations of the micro-batch: all tp ranks have them.": 2 * m * (
                column[0] + nbytes / tp * column[1]
            ),
            "A micro-batch is handed over in one message: alpha counts for each.": 2 * (
                column[0] + m * nbytes * column[1]
            ),
            "alpha is missing.": 2 * m * nbytes * column[1],
            "A number has 2 bytes.": 2 * m * (column[0] + 2 * nbytes * column[1]),
            wrong_link: 2 * m * (other[column][0] + nbytes * other[column][1]),
        } if pp > 1 else {
            "Without a pipeline nothing is handed over.": 2 * m * (column[0] + nbytes * column[1])
        },
        "bubble": {
            "A stage waits as long as pp - 1 micro-batches take, not pp.": busy / m * pp,
            "This is the share of the whole time: the bubble is in seconds.": (pp - 1) / (m + pp - 1),
            "This is the share of the bubble: multiply it by the time of the m micro-batches.": (pp - 1) / m,
            "(pp - 1) / (m + pp - 1) is the share of the time with the bubble; here it was multiplied by the time "
            "without it.": (pp - 1) / (m + pp - 1) * busy,
            "A micro-batch also takes the time of its hand-over.": (pp - 1) * (right["compute"] + right["tensor"]) / m,
            "A micro-batch also takes the time of its all-reduces and its hand-over.": (pp - 1) * right["compute"] / m,
            "A micro-batch also takes the time of its all-reduces along tp.": (pp - 1)
            * (right["compute"] + right["handover"]) / m,
            "The all-reduce over dp comes behind the bubble: it is not a part of a micro-batch.": (pp - 1)
            * (busy + right["data"]) / m,
            "The time of one micro-batch, not of all m.": (pp - 1) * busy,
            "The bubble is idle in forward and in backward.": (pp - 1) * busy / m / 3,
            "(pp - 1) / pp of the time is the bubble with one micro-batch only.": (pp - 1) / pp * busy,
            "This is the time of the whole step.": whole,
        },
        "data": {
            "A rank has the gradients of its own stage and its own shard: L / pp layers, 1 / tp of each.": ring(
                dp, 2 * 12 * model.width**2 * L, replicas
            ),
            "A rank has the gradients of its own stage only: L / pp layers.": ring(dp, 2 * weights * pp, replicas),
            "A rank has the gradients of its own shard only: 1 / tp of each layer.": ring(
                dp, 2 * weights * tp, replicas
            ),
            "The gradients of all micro-batches are added up first: one all-reduce a step.": right["data"] * m,
            "A number has 2 bytes.": ring(dp, 4 * weights, replicas),
            "A gradient is a number of 2 bytes.": ring(dp, weights, replicas),
            "Each of the 2 (q - 1) messages has nbytes / q bytes.": 2 * (dp - 1) * (
                replicas[0] + 2 * weights * replicas[1]
            ),
            "alpha is the time of each message, not of the whole all-reduce.": replicas[0]
            + 2 * (dp - 1) * 2 * weights / dp * replicas[1],
            "A ring has 2 (q - 1) messages, (q - 1) for the sums and (q - 1) to gather them.": right["data"] / 2,
            "The ranks that share a model have different gradients: only the dp replicas sum theirs.": ring(
                dp * pp * tp, 2 * weights, replicas
            ),
            "An all-reduce over dp is of gradients, not of activations.": ring(dp, nbytes, replicas),
            wrong_link: ring(dp, 2 * weights, other[replicas]),
        },
    }  # fmt: skip


class Timed:
    """An answer's seconds for a case; model and cluster are drawn."""

    def __init__(self, answer: Answer, case: Case, seed: int) -> None:
        dp, pp, tp, b, m, stage, shard, per_node = case
        rng = stream(Purpose.MANUAL, seed, "step", *case)

        def between(low: float, high: float) -> float:
            return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.3g}")

        heads = tp * shard
        self.plan, self.batch = (dp, pp, tp, b), dp * b * m
        self.model = Model(pp * stage, heads * int(rng.integers(3, 20)) * 8, heads, int(rng.integers(100, 900)))
        self.cluster = Cluster(
            dp * pp * tp, per_node, between(1e12, 4e14), 80_000_000_000,
            (between(1e-6, 6e-6), between(2e-12, 2e-11)), (between(8e-6, 6e-5), between(5e-11, 9e-10)),
        )  # fmt: skip
        self.answer = answer
        self.called = f"step_time({self.plan}, {self.batch}, {self.model}, {self.cluster})"

    @cached_property
    def got(self) -> list[Any]:
        result = self.answer(self.plan, self.batch, self.model, self.cluster)
        if isinstance(result, np.ndarray) and result.ndim == 1:
            result = result.tolist()
        return expect.listed(result, self.called, f"five numbers ({', '.join(NAMES)})", len(NAMES))

    def compare(self, name: str) -> None:
        """Raise Wrong unless the term of this name is right."""
        given = self.plan, self.batch, self.model, self.cluster
        want, known = terms(*given)[name], mistaken(*given)[name]
        wrong = {sentence: value for sentence, value in known.items() if abs(value - want) > 1e-7 * (want or 1e-9)}
        expect.number(
            self.got[NAMES.index(name)], want, f"{self.called}: {name}", rtol=1e-9, atol=1e-18, mistakes=wrong
        )
