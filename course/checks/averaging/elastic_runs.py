"""Runs of `elastic`: the right weights and centre, the total that pulls conserve, and the rounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from course.checks.averaging.machines import (
    LR,
    ROUNDING,
    Array,
    Machine,
    compare_rounds,
    machines,
    scales,
    vector,
)
from course.judging import Answer, Wrong, expect
from course.judging.ranks.rank_run import RankRun
from course.plural import counted

Case = tuple[int, int, int, int]
"""(p, n, period, steps)"""


@dataclass
class Elastic:
    """A run of `elastic` on p machines; one that raises is made again by the next part that asks for it."""

    answer: Answer
    machines: list[Machine]
    centre: Array
    lr: float
    alpha: float
    period: int
    steps: int

    @property
    def p(self) -> int:
        return len(self.machines)

    @cached_property
    def run(self) -> RankRun:
        settings = (self.lr, self.alpha, self.period, self.steps)
        return self.answer.on_ranks([(each.x, self.centre, each.slopes, *settings) for each in self.machines])

    def called(self, rank: int) -> str:
        return (
            f"elastic on rank {rank} of {self.p}, {counted(len(self.centre), 'weight')}, lr={self.lr:g}, "
            f"alpha={self.alpha:.3g}, period={self.period}, steps={self.steps}"
        )

    def returned(self, rank: int) -> tuple[Array, Array]:
        x, centre = expect.listed(self.run.results[rank], self.called(rank), "(x, centre)", 2)
        return x, centre


def elastic(answer: Answer, case: Case, seed: int, lr: float = LR) -> Elastic:
    """`elastic` on p machines whose weights begin apart from each other and from the centre."""
    p, n, period, steps = case
    drawn, alpha = machines(seed, p, n, steps), round(0.37 + 0.06 * steps, 2) / p
    return Elastic(answer, drawn, scales(n) * (np.linspace(-1, 1, n) + 0.5), lr, alpha, period, steps)


def trained(one: Elastic, slip: str = "") -> tuple[list[Array], Array]:
    """The right weights of all machines and the centre, or those that a known slip gives."""
    xs, centre, lr = [each.x for each in one.machines], one.centre, one.lr
    alpha = one.alpha * (lr if slip == "alpha times lr" else 1)
    first = one.period - 1 if slip == "late" else 0
    for step in range(one.steps):
        is_round = (slip == "every step") or step % one.period == first
        centre_before = centre
        slopes = [each.gradient(x, step) for each, x in zip(one.machines, xs, strict=True)]
        pulls = [alpha * (x - centre) if is_round else np.zeros_like(x) for x in xs]
        moved = sum(pulls) if is_round else 0.0
        if slip == "at the centre":
            slopes = [each.gradient(centre, step) for each in one.machines]
        if slip == "mean":
            moved = moved / one.p
        elif slip == "new weights" and is_round:
            moved = sum(alpha * (x - lr * g - pull - centre) for x, g, pull in zip(xs, slopes, pulls, strict=True))
        elif slip == "repelled centre":
            moved = -moved
        elif slip == "gradients on the centre":
            moved = moved - lr * sum(slopes)
        centre = centre_before + moved
        if slip == "new centre" and is_round:
            pulls = [alpha * (x - centre) for x in xs]
        if slip == "pulled gradient":
            slopes = [each.gradient(x - pull, step) for each, x, pull in zip(one.machines, xs, pulls, strict=True)]
        sign = -1 if slip == "repelled workers" else 0 if slip == "no pull" else 1
        xs = [x - lr * g - sign * pull for x, g, pull in zip(xs, slopes, pulls, strict=True)]
        if slip == "sum on workers" and is_round:
            xs = [x + pull - sum(pulls) for x, pull in zip(xs, pulls, strict=True)]
        if slip == "replaced" and is_round:
            xs = [centre.copy() for _ in xs]
    return xs, centre


AND_LR = "alpha = lr rho already has the learning rate in it: it is not multiplied by lr again."

SLIPS = {
    "new weights": "The centre moves by the distance to the weights before the step, not to those after it.",
    "mean": "The centre moves by the sum of all pulls, not by their mean.",
    "alpha times lr": AND_LR,
    "repelled workers": "The sign of the worker's pull is wrong: x_i loses what the centre gains.",
    "repelled centre": "The sign of the centre's pull is wrong: the centre gains what the workers lose.",
    "new centre": "The workers are pulled towards the centre before the step, not towards the new one.",
    "pulled gradient": "The gradient is that at the weights before the pull.",
    "every step": "There is a pull in each step, whatever the period.",
    "late": "The first pull is in step 0, not in step period - 1.",
    "gradients on the centre": "The centre has no gradient: it moves by pulls only.",
    "sum on workers": "A worker moves by its own pull, not by the sum of all: comm.all_reduce writes into the array "
    "that it is given.",
    "at the centre": "The gradient is that at the worker's own weights, not at the centre.",
    "no pull": "The pull is missing in the worker's step.",
    "replaced": "The workers keep weights of their own: the centre only pulls them.",
}


def compare_trained(one: Elastic) -> None:
    """Raise Wrong unless each machine returned its own weights and the centre."""
    slips = {sentence: trained(one, slip) for slip, sentence in SLIPS.items()}
    xs, centre = trained(one)
    for rank in range(one.p):
        got_x, got_centre = one.returned(rank)
        mistakes = {sentence: wrong[1] for sentence, wrong in slips.items() if not np.allclose(wrong[1], centre)}
        mistakes |= {
            "This is the centre of the beginning.": one.centre,
            "This is x: the function returns (x, centre), in this order.": xs[rank],
            "Only this worker's pull is in it: the pulls of all workers move the centre.": alone(one, rank),
        }
        expect.array(
            got_centre,
            centre,
            f"{one.called(rank)}: the centre",
            rtol=ROUNDING,
            atol=ROUNDING,
            mistakes=mistakes,
            dtype=np.float64,
        )
        mistakes = {sentence: wrong[0][rank] for sentence, wrong in slips.items()}
        expect.array(
            got_x, xs[rank], f"{one.called(rank)}: x", rtol=ROUNDING, atol=ROUNDING, dtype=np.float64,
            mistakes={k: v for k, v in mistakes.items() if not np.allclose(v, xs[rank])},
        )  # fmt: skip


def alone(one: Elastic, rank: int) -> Array:
    """The centre of a worker that knows nothing of the others."""
    own = Elastic(one.answer, [one.machines[rank]], one.centre, one.lr, one.alpha, one.period, one.steps)
    x, centre = own.machines[0].x, own.centre
    for step in range(one.steps):
        pull = one.alpha * (x - centre) if step % one.period == 0 else np.zeros_like(x)
        x, centre = x - one.lr * own.machines[0].gradient(x, step) - pull, centre + pull
    return centre


def compare_total(one: Elastic) -> None:
    """Raise Wrong unless pulls alone, at learning rate 0, conserved the sum of the centre and all workers."""
    n, start = len(one.centre), one.centre + sum(each.x for each in one.machines)
    ends = [[vector(value, n, one.called(rank)) for value in one.returned(rank)] for rank in range(one.p)]
    for rank, (x, _) in enumerate(ends):
        if np.allclose(x, one.machines[rank].x):
            raise Wrong(f"{one.called(rank)}: expected pulls to move x, but it is {expect.shown(x)} as before.", AND_LR)
    workers = sum((x for x, _ in ends), start=np.zeros(n))
    for rank, (_, centre) in enumerate(ends):
        mistakes = {"The centre has not moved.": one.centre + workers}
        for slip in ("mean", "new weights", "repelled centre"):
            xs, moved = trained(one, slip)
            mistakes[SLIPS[slip]] = sum(xs) + moved
        expect.array(
            centre + workers, start, f"{one.called(rank)}: the centre plus the weights of all workers",
            rtol=ROUNDING, atol=ROUNDING * one.p,
            mistakes={k: v for k, v in mistakes.items() if not np.allclose(v, start)},
        )  # fmt: skip


def why_rounds(one: Elastic, count: int) -> str:
    """The likely cause of a wrong number of rounds."""
    if count == one.steps:
        return "That is a round in each step. Without a pull in a step, there is nothing to add up."
    if count == one.steps // one.period:
        return "Steps 0, period, 2 period, … have a pull, also if fewer than `period` steps follow."
    return "A pull takes one all-reduce."


def compare_cost(one: Elastic) -> None:
    """Raise Wrong unless there is one all-reduce of n words in every `period`-th step."""
    rounds = -(-one.steps // one.period)
    compare_rounds(one.run, one.called, len(one.centre), rounds, lambda count: why_rounds(one, count))
