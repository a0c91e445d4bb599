"""Runs of `noise_of_ranks`: the estimates, the mean gradient, the bits on all ranks, and the one all-reduce."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.checks.large_minibatches.noise_estimates import estimates
from course.judging import Answer, Wrong, expect
from course.judging.ranks.counted_all_reduces import words_sent
from course.judging.ranks.rank_run import RankRun
from minidl.random import Purpose, stream

Array = NDArray[Any]

Case = tuple[int, int, int]
"""(p, n, b)"""


@dataclass(frozen=True)
class Step:
    """A step of all ranks: the gradient of each, and what came back."""

    gradients: list[Array]
    b: int
    run: RankRun

    @property
    def p(self) -> int:
        return len(self.gradients)

    @property
    def n(self) -> int:
        return len(self.gradients[0])

    @property
    def mean(self) -> Array:
        return np.asarray(np.mean(self.gradients, axis=0))

    def called(self, rank: int) -> str:
        return f"noise_of_ranks(comm, gradient, b={self.b}) on rank {rank} of {self.p}, gradient of n={self.n}"

    def returned(self, rank: int) -> tuple[Any, Any, Any]:
        """mean, squared_norm and trace; Wrong if that is not what was returned."""
        wanted = "(mean, squared_norm, trace)"
        mean, squared_norm, trace = expect.listed(self.run.results[rank], self.called(rank), wanted, 3)
        return mean, squared_norm, trace


def without_mean(gradients: list[Array]) -> list[Array]:
    """Gradients whose mean is nearly 0, so that the estimate of |G|^2 is negative."""
    mean = np.mean(gradients, axis=0)
    return [np.round(gradient - mean, 2) for gradient in gradients]


def tiny(gradients: list[Array]) -> list[Array]:
    """Gradients near a minimum; and one with much noise, so that tr(Sigma) is far larger than |G|^2."""
    mean = np.mean(gradients, axis=0)
    return [1e-8 * (30 * (gradient - mean) + mean) for gradient in gradients]


def step(
    answer: Answer, case: Case, seed: int, change: Callable[[list[Array]], list[Array]] = lambda gradients: gradients
) -> Step:
    """Let the answer run on all ranks. change: of the gradients beforehand."""
    p, n, b = case
    rng = stream(Purpose.MANUAL, seed, "noise of ranks", *case)
    mean = rng.uniform(1.0, 2.0, n)
    gradients = change([np.round(mean + rng.normal(0.0, 1.0, n), 2) for _ in range(p)])
    return Step(gradients, b, answer.on_ranks([(gradient.copy(), b) for gradient in gradients], may_change=[0]))


def compare_mean(one: Step) -> None:
    """Raise Wrong unless each rank has the mean gradient."""
    for rank in range(one.p):
        slips = {
            "This is the sum over all ranks: divide it by their number.": one.mean * one.p,
            "This is the rank's own gradient: what comm.all_reduce makes is in the array that it was given.": (
                one.gradients[rank]
            ),
            "It was divided by the number of samples, too: the gradients are means already.": one.mean / one.b,
            "It was divided by p twice.": one.mean / one.p,
        }
        expect.array(one.returned(rank)[0], one.mean, f"{one.called(rank)}: mean", rtol=1e-9, mistakes=slips)


def compare_estimates(one: Step) -> None:
    """Raise Wrong unless each rank has the estimates of |G|^2 and tr(Sigma)."""
    squares = [float(gradient @ gradient) for gradient in one.gradients]
    small, large, p, b = float(np.mean(squares)), float(one.mean @ one.mean), one.p, one.b
    right = estimates(small, large, b, p * b)
    for rank in range(p):
        wrong = {
            "Only this rank's own squared norm is in it: average it over all ranks.": estimates(
                squares[rank], large, b, p * b
            ),
            "The squared norms of all ranks were added up: take their mean.": estimates(sum(squares), large, b, p * b),
            "The large minibatch's gradient is the mean over the ranks; this is the squared norm of their sum.": (
                estimates(small, p * p * large, b, p * b)
            ),
            "The small minibatch's square is the mean of the squared norms; this is the square of their mean "
            "norm.": estimates(float(np.mean(np.sqrt(squares))) ** 2, large, b, p * b),
            "The sizes are b and p * b, not 1 and p: tr(Sigma) came out b times too small.": estimates(
                small, large, 1, p
            ),
            "The sizes were swapped.": estimates(small, large, p * b, b),
            "|G|^2 still has the noise of the large minibatch in it: subtract trace / (p b).": (large, right[1]),
            "This divides by p, and not by p - 1: the ranks' own mean was subtracted, so tr(Sigma) comes out too "
            "small.": (large - (small - large) / p, (small - large) * b),
            "tr(Sigma) was divided by n: a trace is a sum over the coordinates.": (right[0], right[1] / one.n),
            "The two estimates are returned in the other order.": (right[1], right[0]),
            "An estimate of |G|^2 may be negative: return it as it is.": (max(right[0], 0.0), right[1]),
        }
        got = one.returned(rank)[1:]
        for name, number, want in zip(("squared_norm", "trace"), got, right, strict=True):
            at = 0 if name == "squared_norm" else 1
            slips = {sentence: pair[at] for sentence, pair in wrong.items() if not np.isclose(pair[at], want)}
            if one.n == 1 and isinstance(number, np.ndarray) and number.shape == (1,):
                raise Wrong(f"{one.called(rank)}: {name}: expected a number, got an array of shape (1,).")
            expect.number(number, want, f"{one.called(rank)}: {name}", rtol=1e-9, atol=1e-9 * small, mistakes=slips)


def compare_traffic(one: Step) -> None:
    """Raise Wrong unless every rank made one all-reduce of n + 1 numbers, and nothing else."""
    expected = "expected one comm.all_reduce of n + 1 numbers and no other communication"
    for rank in range(one.p):
        called = one.called(rank)
        others = [name for name in one.run.operations[rank] if name != "all_reduce"]
        if others:
            causes = {
                "all_gather": "That brings every rank all p gradients, p - 1 times as many numbers as its own.",
                "gather": "One rank would receive all gradients.",
                "broadcast": "After an all-reduce all ranks have the same sum.",
                "barrier": "The all-reduce itself waits for all ranks.",
            }
            raise Wrong(f"{called}: {expected}, got comm.{others[0]}.", causes.get(others[0], ""))
        own = one.run.collectives[rank]
        if len(own) != 1:
            raise Wrong(
                f"{called}: {expected}, got {len(own)} all-reduces.",
                "Nothing was communicated."
                if not own
                else "The squared norm fits behind the gradient, in the same array: a second all-reduce pays its "
                "start-up again.",
            )
    sent, numbers = sum(one.run.nbytes), words_sent(one.p, one.n + 1)
    if sent > 8 * numbers or (one.p < 4 and sent != 8 * numbers):
        raise Wrong(
            f"{one.called(0)}: {expected}, in which all ranks together send at most {8 * numbers} bytes, got {sent}.",
            "float32 halves the traffic and loses digits." if sent == 4 * numbers else "",
        )


def compare_bits(one: Step) -> None:
    """Raise Wrong unless all ranks returned the same to the bit, and the gradients are as they were."""
    compare_mean(one)
    first = one.returned(0)
    for rank in range(one.p):
        for name, want, got in zip(("mean", "squared_norm", "trace"), first, one.returned(rank), strict=True):
            numbers = expect.number_array(want, f"{one.called(0)}: {name}", "numbers")
            expect.same_bits(got, numbers, f"{one.called(rank)}: {name}, compared with that of rank 0")
        expect.same_bits(
            one.run.arguments[rank][0],
            one.gradients[rank],
            f"{one.called(rank)}: the caller's gradient was changed",
            {"comm.all_reduce writes into the array that it is given: give it a new one.": one.run.arguments[rank][0]},
        )
