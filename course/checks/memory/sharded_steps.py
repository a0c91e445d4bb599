"""Steps with sharded optimizer state: the weights of one node, the messages of each rank, and the state that it keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    """Three steps. Clipped: the first to half the norm; the second is within the bound; the third has no gradient."""
    N, kind, total = case
    rng = stream(Purpose.MANUAL, seed, "sharded steps", N, total)
    gradients = [[rng.normal(size=total) + 0.3 for _ in range(N)] for _ in range(STEPS)]
    for each in gradients:
        for g in each:
            g[::5] *= 1e-7  # small gradients are not 0
    norms: list[float | None] = [None] * STEPS
    if is_clipped:
        gradients[-1] = [np.zeros(total) for _ in range(N)]
        whole = [float(np.linalg.norm(np.mean(each, axis=0))) for each in gradients]
        norms = [whole[0] / 2, whole[1] * 1.1, whole[0]]
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
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise Wrong(
                    f"{one.called(step, rank)}: expected a pair (weights, state), got {expect.shown(result)}.",
                    expect.not_a_value(result),
                )
            states[rank] = result[1]
        yield step, run


def compare_weights(answer: Answer, one: Steps) -> None:
    """Raise Wrong unless every rank returns the weights of one node after each step."""
    for step, run in runs(answer, one):
        want = one.cut(one.weights[step + 1])
        slips = {sentence: one.cut(vector) for sentence, vector in mistaken(one, step).items()}
        for rank, (weights, _) in enumerate(run.results):
            called = one.called(step, rank)
            if not isinstance(weights, (list, tuple)) or len(weights) != len(want):
                raise Wrong(
                    f"{called}: expected a list of {counted(len(want), 'array')} as the weights, "
                    f"got {expect.shown(weights)}.",
                    "The weights are returned in the shapes of the parameters, as they were given.",
                )
            for number, right in enumerate(want):
                known = {sentence: wrong[number] for sentence, wrong in slips.items()}
                known = {sentence: wrong for sentence, wrong in known.items() if not np.allclose(wrong, right, 1e-9)}
                where = f"{called}: weights[{number}]"
                expect.array(
                    weights[number], right, where, rtol=0.0, atol=1e-10, mistakes=known, dtype=np.float64
                )  # fmt: skip
                if rank and right.size:
                    first = expect.from_list(run.results[0][0][number], right)
                    got = expect.from_list(weights[number], right)
                    expect.same_bits(got, first, f"{where}, compared with those of rank 0")


def mistaken(one: Steps, step: int) -> dict[str, Array]:
    """The weights that known mistakes give in this step, if all steps before were right."""
    N, gradients, max_norm = one.N, one.gradients[step], one.norms[step]
    bounds = np.cumsum([0, *(own(one.total, N, r) for r in range(N))])

    def after(gradient: Array, *, is_first: bool = False) -> Array:
        update, state, w = Update(one.kind), None, one.weights[0]
        for before in () if is_first else range(step):
            w, state = update(w, mean_of(one.gradients[before], one.norms[before]), state)
        return update(one.weights[step], gradient, state)[0]

    g, total = mean_of(gradients, max_norm), np.sum(gradients, axis=0)
    known = {
        "These are the weights from before the step.": one.weights[step],
        "The gradient is the mean over the ranks, not the sum.": after(total if max_norm is None else clipped(total, max_norm)),
        "The state of the step before is lost: pass `state` to update, and return what it returns.": after(
            g, is_first=True
        ),
        "Only this rank's range is new: the other ranges come from the other ranks.": np.concatenate(
            [after(g)[: bounds[1]], one.weights[step][bounds[1] :]]
        ),
        "The gradient was divided by N twice.": after(g / N),
    }
    if max_norm is not None:
        mean = np.mean(gradients, axis=0)
        pieces = [mean[a:b] for a, b in zip(bounds, bounds[1:], strict=False)]
        known |= {
            "The gradient is not clipped.": after(mean),
            "Each range is clipped by its own norm: the norm is that of the whole gradient.": after(
                np.concatenate([clipped(piece, max_norm) for piece in pieces])
            ),
            "Each rank's gradient is clipped before the mean: clip the mean.": after(
                np.mean([clipped(each, max_norm) for each in gradients], axis=0)
            ),
            "The sum of squares is missing its root: the norm is a length.": after(
                mean * min(1.0, max_norm / max(float(mean @ mean), 1e-300))
            ),
            "A gradient within the bound stays as it is; only a larger one is scaled.": after(
                mean * (max_norm / max(float(np.linalg.norm(mean)), 1e-300))
            ),
            "The norm is a sum over the ranks of squares, not of norms.": after(
                mean * min(1.0, max_norm / max(sum(float(np.linalg.norm(piece)) for piece in pieces), 1e-300))
            ),
            "Single numbers are clipped: clipping by the norm keeps the direction.": after(
                np.clip(mean, -max_norm, max_norm)
            ),
        }  # fmt: skip
    return known


def clipped(g: Array, max_norm: float) -> Array:
    """The vector, not longer than max_norm."""
    norm = float(np.linalg.norm(g))
    return g if norm <= max_norm else g * (max_norm / norm)


CAUSES = {
    "all_reduce": "An all-reduce of the gradient brings every rank all of it, and sends twice as much: "
    "reduce-scatter brings it only its own range.",
    "broadcast": "One all-gather brings every rank all ranges.",
    "gather": "To gather everything on one rank makes that rank the bottleneck.",
    "barrier": "A collective waits for what it needs.",
}


def compare_messages(answer: Answer, one: Steps) -> None:
    """Raise Wrong unless there is one reduce-scatter and one all-gather, and for clipping an all-reduce of a number."""
    N, P = one.N, one.total
    for step, run in runs(answer, one):
        has_norm = one.norms[step] is not None
        expected = "expected one comm.reduce_scatter and one comm.all_gather" + (
            ", and one comm.all_reduce of one number" if has_norm else ", and nothing else"
        )
        for rank in range(N):
            called = one.called(step, rank)
            made = [each.operation for each in run.collectives[rank]]
            for name in ("reduce_scatter", "all_gather"):
                others = sorted(set(run.operations[rank]) - {"reduce_scatter", "all_gather", *["all_reduce"] * has_norm})
                expect.true(
                    not others, f"{called}: {expected}, got comm.{', comm.'.join(others)}.", CAUSES.get(others[0] if others else "", "")
                )
                times = made.count(name)
                expect.true(
                    times == 1,
                    f"{called}: {expected}, got {counted(times, f'comm.{name}')}.",
                    "One vector of all parameters needs one collective; one for each parameter needs many messages."
                    if times > 1
                    else "",
                )
            sent = {name: nbytes for name, (_, nbytes) in run.traffic[rank].items()}
            want = {"reduce_scatter": 8 * (P - own(P, N, rank)), "all_gather": 8 * (P - own(P, N, rank + 1))}
            for name, nbytes in want.items():
                expect.true(
                    sent[name] == nbytes,
                    f"{called}: sent {sent[name]} bytes in comm.{name}, expected {nbytes}: float64 numbers of all "
                    f"ranges but one.",
                    "Each number needs 8 bytes; with 4 it loses digits."
                    if sent[name] == nbytes / 2
                    else "Every rank gives its own range to the all-gather, and nothing else."
                    if name == "all_gather" and sent[name] > nbytes
                    else "The reduce-scatter has all parameters in one vector, without padding.",
                )
            most = made.count("all_reduce")
            expect.true(most == has_norm, f"{called}: {expected}, got {counted(most, 'comm.all_reduce')}.")
        if has_norm:
            total = sum(row["all_reduce"][1] for row in run.traffic)
            expect.true(
                total <= 8 * words_sent(N, 1),
                f"{one.called(step, 0)}: all ranks together sent {total} bytes in comm.all_reduce, expected at most "
                f"{8 * words_sent(N, 1)}: those of one number.",
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
                "A rank keeps the state of its own range, and none of the others'."
                if count > most
                else "Return what update returned as the state: the next step needs it.",
            )


def numbers_in(state: Any) -> int:
    """The numbers in arrays, and floats, of a state."""
    if isinstance(state, np.ndarray):
        return state.size
    if isinstance(state, dict):
        return sum(map(numbers_in, state.values()))
    if isinstance(state, (list, tuple)):
        return sum(map(numbers_in, state))
    return int(isinstance(state, float))
