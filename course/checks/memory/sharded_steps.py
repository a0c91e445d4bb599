"""Steps with sharded optimizer state: the weights of one node, and the messages and the state of each rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.checks.memory.node_bytes import own
from course.judging import Answer, Wrong, expect
from course.judging.ranks.counted_all_reduces import words_sent
from course.judging.ranks.rank_run import RankRun
from course.plural import counted
from course.probes.memory import Update
from minidl.random import Purpose, stream

Array = NDArray[Any]

Case = tuple[int, str, int]
"""(N, "momentum" or "Adam", numbers of all parameters)"""

STATES = {"momentum": 1, "Adam": 2}
"""Numbers of state for each weight."""

STEPS = 3


def shapes(total: int, seed: int) -> list[tuple[int, ...]]:
    """The shapes of parameters with `total` numbers: a matrix, a scalar, an empty one, a vector, three axes."""
    rows = max(total * 2 // 5 // 3, 1)
    matrix = (rows, 3) if total >= 3 else (total, 1)
    left = total - matrix[0] * matrix[1]
    scalar = [()] if left else []
    left -= len(scalar)
    blocks = left // 8
    vector = left - 4 * blocks
    found = [matrix, *scalar, (0, 2), (vector,), (blocks, 2, 2)]
    return found if seed % 2 else found[::-1]


@dataclass(frozen=True)
class Steps:
    """What the ranks are given in each step, and what one node makes of it.

    weights     before the first step, and after each step, as one vector
    gradients   of each step, of each rank
    norm        max_norm of each step
    """

    N: int
    kind: str
    shapes: list[tuple[int, ...]]
    weights: list[Array]
    gradients: list[list[Array]]
    norms: list[float | None]

    @property
    def total(self) -> int:
        return self.weights[0].size

    def cut(self, vector: Array) -> list[Array]:
        """The vector as parameters."""
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        parts = np.split(vector, np.cumsum(sizes)[:-1])
        return [part.reshape(shape).copy() for part, shape in zip(parts, self.shapes, strict=True)]

    def called(self, step: int, rank: int) -> str:
        clipped = f", max_norm={self.norms[step]:.3g}" if self.norms[step] is not None else ""
        return (
            f"shard_optimizer, step {step + 1} on rank {rank} of {self.N}, {self.kind}, "
            f"{counted(self.total, 'number')}{clipped}"
        )


def mean_of(gradients: Sequence[Array], max_norm: float | None) -> Array:
    """The mean gradient, clipped."""
    g = np.mean(gradients, axis=0)
    norm = float(np.linalg.norm(g))
    return g if max_norm is None or norm <= max_norm else g * (max_norm / norm)


def drawn(case: Case, seed: int, *, is_clipped: bool = False) -> Steps:
    """Three steps. Clipped: the first to a quarter of its norm; the second is short enough; the third is 0."""
    N, kind, total = case
    rng = stream(Purpose.MANUAL, seed, "sharded steps", N, total)
    gradients = [[rng.normal(size=total) + 0.3 for _ in range(N)] for _ in range(STEPS)]
    for each in gradients:
        for g in each:
            g[3::5] *= 1e-7  # small gradients are not 0; a message shows the first difference, which is no small one
    norms: list[float | None] = [None] * STEPS
    if is_clipped:
        gradients[-1] = [np.zeros(total) for _ in range(N)]
        whole = [float(np.linalg.norm(np.mean(each, axis=0))) for each in gradients]
        norms = [whole[0] / 4, whole[1] * 1.1, whole[0]]
    weights, state, update = [rng.normal(size=total)], None, Update(kind)
    for each, max_norm in zip(gradients, norms, strict=True):
        w, state = update(weights[-1], mean_of(each, max_norm), state)
        weights.append(w)
    return Steps(N, kind, shapes(total, seed + N), weights, gradients, norms)


def runs(answer: Answer, one: Steps, *, is_limited: bool = False) -> Iterator[tuple[int, RankRun]]:
    """Let the answer do the steps, each from the right weights and from its own state."""
    states: list[Any] = [None] * one.N
    for step in range(STEPS):
        arguments = [
            (
                one.cut(one.weights[step]),
                one.cut(one.gradients[step][rank]),
                states[rank],
                Update(one.kind, own(one.total, one.N, rank) if is_limited else -1),
                one.norms[step],
            )
            for rank in range(one.N)
        ]
        run = answer.on_ranks(arguments)
        for rank, result in enumerate(run.results):
            _, states[rank] = expect.listed(result, one.called(step, rank), "a pair (weights, state)", 2)
        yield step, run


def compare_weights(answer: Answer, one: Steps) -> None:
    """Raise Wrong unless every rank returns the weights of one node after each step."""
    for step, run in runs(answer, one):
        vectors = [vector_of(one, weights, one.called(step, rank)) for rank, (weights, _) in enumerate(run.results)]
        want = one.weights[step + 1]
        for rank, vector in enumerate(vectors):
            called = f"{one.called(step, rank)}: the new weights, as one vector"
            known = {
                sentence: wrong
                for sentence, wrong in mistaken(one, step, rank).items()
                if np.max(np.abs(wrong - want)) > 1e-8
            }
            expect.array(vector, want, called, rtol=0.0, atol=1e-10, mistakes=known)
            expect.same_bits(vector, vectors[0], f"{called}, compared with those of rank 0")


def vector_of(one: Steps, weights: Any, called: str) -> Array:
    """The returned weights as one vector, or Wrong if they have other shapes or types."""
    if not isinstance(weights, (list, tuple)) or len(weights) != len(one.shapes):
        raise Wrong(
            f"{called}: expected a list of {counted(len(one.shapes), 'array')} as the weights, "
            f"got {expect.shown(weights)}.",
            expect.not_a_value(weights)
            or "The weights are returned in the shapes of the parameters, as they were given.",
        )
    vectors = []
    for number, (w, shape) in enumerate(zip(weights, one.shapes, strict=True)):
        where, wanted = f"{called}: weights[{number}]", f"an array of shape {shape}"
        numbers = expect.number_array(expect.from_list(w, np.zeros(shape)), where, wanted)
        expect.true(numbers.shape == shape, f"{where}: expected {wanted}, got shape {numbers.shape}.")
        is_exact = numbers.dtype == np.float64 or not numbers.size
        expect.true(is_exact, f"{where}: expected an array of float64, got one of {numbers.dtype}.")
        vectors.append(numbers.ravel())
    return np.concatenate(vectors)


def mistaken(one: Steps, step: int, rank: int) -> dict[str, Array]:
    """The weights that known mistakes give on a rank in this step, if all steps before were right."""
    N, gradients, max_norm = one.N, one.gradients[step], one.norms[step]
    bounds = np.cumsum([0, *(own(one.total, N, r) for r in range(N))])
    mean, update = np.mean(gradients, axis=0), Update(one.kind)

    def after(gradient: Array, *, is_first: bool = False) -> Array:
        state, w = None, one.weights[0]
        for before in () if is_first else range(step):
            w, state = update(w, mean_of(one.gradients[before], one.norms[before]), state)
        return update(one.weights[step], gradient, state)[0]

    def scaled(norm: float) -> Array:
        """The weights after a gradient that is clipped as if this were its norm."""
        return after(mean * min(1.0, max_norm / max(norm, 1e-300))) if max_norm is not None else after(mean)

    g = mean_of(gradients, max_norm)
    only = one.weights[step].copy()
    only[bounds[rank] : bounds[rank + 1]] = after(g)[bounds[rank] : bounds[rank + 1]]
    known = {
        "These are the weights from before the step.": one.weights[step],
        "The state of the step before is lost: pass `state` to update, and return what it returns.": after(
            g, is_first=True
        ),
        "Only this rank's range is new: the other ranges come from the other ranks.": only,
    }
    if max_norm is None:
        return known | {
            "The gradient is the mean over the ranks, not the sum.": after(N * mean),
            "The gradient was divided by N twice.": after(mean / N),
        }
    pieces = [mean[a:b] for a, b in pairwise(bounds)]
    return known | {
        "The gradient is not clipped.": after(mean),
        "Each range is clipped by its own norm: the norm is that of the whole gradient.": after(
            np.concatenate([clipped(piece, max_norm) for piece in pieces])
        ),
        "Each rank's gradient is clipped before the mean: clip the mean.": after(
            np.mean([clipped(each, max_norm) for each in gradients], axis=0)
        ),
        "The norm is the root of the sum of squares.": scaled(float(mean @ mean)),
        "The squares of the ranks' norms are added up, not the norms.": scaled(
            sum(float(np.linalg.norm(piece)) for piece in pieces)
        ),
        "The norm is that of the mean, not of the sum: divide by N before.": scaled(N * float(np.linalg.norm(mean))),
        "A gradient within the bound stays as it is; only a larger one is scaled.": after(
            mean * (max_norm / max(float(np.linalg.norm(mean)), 1e-300))
        ),
        "Single numbers are clipped: clipping by the norm keeps the direction.": after(
            np.clip(mean, -max_norm, max_norm)
        ),
    }  # fmt: skip


def clipped(g: Array, max_norm: float) -> Array:
    """The vector, not longer than max_norm."""
    norm = float(np.linalg.norm(g))
    return g if norm <= max_norm else g * (max_norm / norm)


CAUSES = {
    "all_reduce": "An all-reduce of the gradient brings every rank all of it, and sends twice as much: "
    "reduce-scatter brings it only its own range.",
    "broadcast": "One all-gather brings every rank all ranges.",
    "reduce": "To reduce on one rank makes that rank the bottleneck: each rank gets its range from a reduce-scatter.",
    "barrier": "A collective waits for what it needs.",
}


def compare_messages(answer: Answer, one: Steps) -> None:
    """Raise Wrong unless there is one reduce-scatter and one all-gather, and for clipping an all-reduce of a number."""
    N, P = one.N, one.total
    for step, run in runs(answer, one):
        names = ["reduce_scatter", "all_gather", *["all_reduce"] * (one.norms[step] is not None)]
        last = ", and one comm.all_reduce of one number" if len(names) == 3 else ", and nothing else"
        expected = f"expected one comm.reduce_scatter and one comm.all_gather{last}"
        for rank in range(N):
            called = one.called(step, rank)
            made = Counter(each.operation for each in run.collectives[rank])
            others = [name for name in run.operations[rank] if name not in names]
            if others:
                is_number = run.traffic[rank][others[0]][1] <= 8 * words_sent(N, 1)
                cause = "Without max_norm, no rank needs the norm." if is_number else CAUSES["all_reduce"]
                raise Wrong(
                    f"{called}: {expected}, got comm.{others[0]}.",
                    cause if others[0] == "all_reduce" else CAUSES.get(others[0], ""),
                )
            for name in names:
                expect.true(
                    made[name] == 1,
                    f"{called}: {expected}, got {counted(made[name], f'comm.{name}', f'comm.{name}')}.",
                    "One collective is enough for the vector of all parameters, or of all weights."
                    if made[name] > 1
                    else "To gather all gradients brings a rank N times as much as their sum."
                    if made["all_gather"] > 1
                    else "",
                )
            sent = {name: nbytes for name, (_, nbytes) in run.traffic[rank].items()}
            for name, share in (("reduce_scatter", own(P, N, rank)), ("all_gather", own(P, N, rank + 1))):
                nbytes = 8 * (P - share)
                expect.true(
                    sent[name] == nbytes,
                    f"{called}: sent {sent[name]} bytes in comm.{name}, expected {nbytes}: all P = {P} float64 numbers "
                    "but those of one range.",
                    "With 4 bytes a number loses digits."
                    if sent[name] == nbytes / 2
                    else "Every rank gives its own range to the all-gather, and nothing else."
                    if name == "all_gather"
                    else "The reduce-scatter has all parameters in one vector, without padding.",
                )
        if len(names) == 3:
            total, most = sum(row["all_reduce"][1] for row in run.traffic), 8 * words_sent(N, 1)
            expect.true(
                total <= most,
                f"{one.called(step, 0)}: all ranks together sent {total} bytes in comm.all_reduce, expected at most "
                f"{most}: those of one number.",
                "Each rank adds up the squares of its own range; one sum goes over the network.",
            )


def compare_state(answer: Answer, one: Steps) -> None:
    """Raise Wrong unless each rank updates its own range alone, and keeps no state but that of this range."""
    for step, run in runs(answer, one, is_limited=True):
        for rank, (_, state) in enumerate(run.results):
            most = STATES[one.kind] * own(one.total, one.N, rank)
            count = numbers_in(state)
            expect.true(
                count == most,
                f"{one.called(step, rank)}: the state has {counted(count, 'number')}, expected {most}: "
                f"{STATES[one.kind]} for each number in this rank's range.",
                "A rank keeps what update returned for its own range, and no other array."
                if count > most
                else "Return what update returned as the state: the next step needs it.",
            )


def numbers_in(state: Any) -> int:
    """The numbers in arrays and lists of numbers of a state; a single number, such as a norm, does not count.

    Each byte of `bytes` counts as a number, since it may be part of one.
    """
    if isinstance(state, np.ndarray):
        return state.size
    if isinstance(state, (bytes, bytearray)):
        return len(state)
    if isinstance(state, dict):
        return sum(map(numbers_in, state.values()))
    if isinstance(state, (list, tuple)):
        is_vector = isinstance(state, list) and all(isinstance(each, float) for each in state)
        return len(state) if is_vector else sum(map(numbers_in, state))
    return 0
