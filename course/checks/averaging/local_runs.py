"""Runs of `local_sgd`, its rounds, and the function that counts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from course.checks.averaging.machines import LR, ROUNDING, Array, Machine, compare_rounds, machines
from course.judging import Answer, expect
from course.judging.ranks.rank_run import RankRun
from course.plural import counted

Case = tuple[int, int, int, int, int]
"""(p, n, period, steps, first)"""

Counted = tuple[int, int, int, int, int]
"""(p, n, steps, period, first)"""


@dataclass
class Local:
    """A run of `local_sgd` on p machines, made at its first use; if it raises, it is made again at the next use."""

    answer: Answer
    machines: list[Machine]
    period: int
    steps: int
    first: int
    lr: float = LR

    @cached_property
    def run(self) -> RankRun:
        settings = (self.lr, self.period, self.steps, self.first)
        return self.answer.on_ranks([(each.x, each.slopes, *settings) for each in self.machines])

    def called(self, rank: int) -> str:
        return (
            f"local_sgd on rank {rank} of {len(self.machines)}, {counted(len(self.machines[0].x), 'weight')}, "
            f"period={self.period}, steps={self.steps}, first={self.first}"
        )


def local(answer: Answer, case: Case, seed: int) -> Local:
    """`local_sgd` on p machines that begin with the same weights."""
    p, n, period, steps, first = case
    return Local(
        answer, machines(seed, p, n, steps, is_equal=True), period, steps, first, round(LR + 0.02 * (steps % 5), 2)
    )


def ends(steps: int, period: int, first: int, slip: str = "") -> list[int]:
    """The steps after which there is a round."""
    if slip == "early":
        found = [step for step in range(steps) if step < first or (step - first) % period == 0]
    elif slip == "counted from step 0":
        found = [step for step in range(steps) if step < first or (step + 1) % period == 0]
    elif slip == "longer":
        found = [step for step in range(steps) if step < first or (step + 1 - first) % (period + 1) == 0]
    elif slip == "no first":
        found = [step for step in range(steps) if (step + 1) % period == 0]
    elif slip == "one more at first":
        found = [step for step in range(steps) if step <= first or (step + 1 - first) % period == 0]
    elif slip == "every step":
        return list(range(steps))
    elif slip == "one round":
        found = []
    else:
        found = [step for step in range(steps) if step < first or (step + 1 - first) % period == 0]
    return found if slip == "no last" else sorted({*found, steps - 1})


def trained(one: Local, slip: str = "") -> list[Array]:
    """The right weights of all machines, or those that the mistake `slip` gives."""
    xs, p = [each.x for each in one.machines], len(one.machines)
    rounds = ends(one.steps, one.period, one.first, slip)
    for step in range(one.steps):
        if slip == "before" and step in rounds:
            xs = [sum(xs) / p for _ in xs]
        slopes = [each.gradient(x, step) for each, x in zip(one.machines, xs, strict=True)]
        if slip == "gradients":
            slopes = [sum(slopes) / p] * p if step in rounds else slopes
        elif slip == "one gradient a round":
            slopes = slopes if step in rounds else [np.zeros_like(x) for x in xs]
        xs = [x - one.lr * slope for x, slope in zip(xs, slopes, strict=True)]
        is_round = step in rounds and slip not in ("gradients", "before")
        if is_round:
            total = sum(xs)
            xs = [total if slip == "sum" else total / p for _ in xs]
    return xs


SLIPS = {
    "sum": "These are sums of the weights; the round takes their mean.",
    "no last": "The last round is missing: there is one after the last step, also if a period is not complete.",
    "early": "A round comes after `period` steps; the first one here comes after one step.",
    "longer": "A round comes after `period` steps; here it is period + 1.",
    "counted from step 0": "Periods begin after the first `first` steps, not at step 0.",
    "no first": "Each of the first `first` steps has a round.",
    "one more at first": "One step too many has a round of its own at the beginning.",
    "every step": "There is a round in each step, whatever the period.",
    "one round": "Only the last round has an effect, as in one-shot averaging: a machine goes on with the mean.",
    "gradients": "Gradients are averaged in the steps with a round, but the weights stay apart: average the weights.",
    "before": "The mean is taken of the weights before the step; a round comes after the step.",
    "one gradient a round": "A machine makes all `period` steps itself, and not only one in a round.",
}


def compare_trained(one: Local) -> None:
    """Raise Wrong unless each machine returned the mean after the last round."""
    want = trained(one)[0]
    slips = {sentence: trained(one, slip) for slip, sentence in SLIPS.items()}
    for rank in range(len(one.machines)):
        mistakes = {sentence: xs[rank] for sentence, xs in slips.items()}
        mistakes["These are the weights of the beginning."] = one.machines[rank].x
        expect.array(
            one.run.results[rank], want, one.called(rank), rtol=ROUNDING, atol=ROUNDING, dtype=np.float64,
            mistakes={k: v for k, v in mistakes.items() if not np.allclose(v, want)},
        )  # fmt: skip


def slip_of(one: Local) -> str:
    """The known slip that gives the weights of all machines; "" if none does, or if the weights are right."""
    want = trained(one)
    for slip, sentence in SLIPS.items():
        wrong = trained(one, slip)
        if not np.allclose(wrong, want) and all(
            isinstance(got, np.ndarray) and got.dtype.kind in "biuf" and got.shape == x.shape and np.allclose(got, x)
            for got, x in zip(one.run.results, wrong, strict=True)
        ):
            return sentence
    return ""


def compare_cost(one: Local) -> None:
    """Raise Wrong unless each round is one all-reduce of n words, and there is nothing else."""
    rounds = len(ends(one.steps, one.period, one.first))

    def why(count: int) -> str:
        if count == one.steps:
            return "That is one in each step: between rounds machines train without communication."
        if slip := slip_of(one):
            return slip
        if count == rounds + 1:
            return "If a period ends with the last step, one round is enough. With n words, one all-reduce is one."
        return "A round is one all-reduce, of the weights."

    compare_rounds(one.run, one.called, len(one.machines[0].x), rounds, why)


def returned(answer: Answer, case: Counted) -> tuple[str, object, object]:
    """The call of `rounds_and_words`, and the two numbers that it returned."""
    p, n, steps, period, first = case
    called = f"rounds_and_words(p={p}, n={n}, steps={steps}, period={period}, first={first})"
    rounds, words = expect.listed(answer(*case), called, "(rounds, words)", 2)
    return called, rounds, words


def judge_rounds(answer: Answer, cases: Sequence[Counted]) -> None:
    """Raise Wrong unless the rounds are counted right."""
    asked = [returned(answer, case) for case in cases]
    cause = cause_of_all([got for _, got, _ in asked], [rounds_by_mistake(case) for case in cases])
    for case, (called, got, _) in zip(cases, asked, strict=True):
        expect.number(got, rounds_of(case), f"{called}: rounds", mistakes={cause: got})


def rounds_by_mistake(case: Counted) -> dict[str, float]:
    """The rounds by known mistakes."""
    _, _, steps, period, first = case
    alone = min(first, steps)
    later = -(-(steps - alone) // period)
    return {
        "There are only `steps` steps, fewer than `first`.": first + -(-(steps - first) // period),
        "The last period may be incomplete, and has a round, too.": alone + (steps - alone) // period,
        "Periods begin after the first `first` steps.": alone + -(-steps // period),
        "The rounds of the first `first` steps are missing.": later,
        "Without the first `first` steps, periods begin after these.": -(-steps // period),
        "The last period ends with the last step: there is no further round.": alone + (steps - alone) // period + 1,
    }


def judge_words(answer: Answer, cases: Sequence[Counted]) -> None:
    """Raise Wrong unless the words are those of a ring all-reduce in each round."""
    asked = [returned(answer, case) for case in cases]
    own = [words(case, number(rounds)) for case, (_, rounds, _) in zip(cases, asked, strict=True)]
    known = [words_by_mistake(case) | {OTHER_ROUNDS: each} for case, each in zip(cases, own, strict=True)]
    cause = cause_of_all([got for _, _, got in asked], known)
    for case, (called, _, got) in zip(cases, asked, strict=True):
        want = words(case, rounds_of(case))
        expect.number(got, want, f"{called}: words", rtol=1e-9, mistakes={cause: got})


OTHER_ROUNDS = "These are the words of as many rounds as were returned, and that number is wrong."


def rounds_of(case: Counted) -> int:
    _, _, steps, period, first = case
    return len(ends(steps, period, first))


def words(case: Counted, rounds: float) -> float:
    """The words that a machine sends in `rounds` rounds."""
    p, n, *_ = case
    return rounds * 2 * (p - 1) / p * n


def words_by_mistake(case: Counted) -> dict[str, float]:
    """The words by known mistakes."""
    p, n, steps, _, _ = case
    rounds = rounds_of(case)
    want = words(case, rounds)
    return {
        "A ring has a reduce-scatter and an all-gather: (p - 1) / p n words in each of the two.": want / 2,
        "These are the words of one round.": want / rounds,
        "These are the words with an all-reduce in every step.": words(case, steps),
        "These are the words of all machines together.": want * p,
        "These are bytes.": 8 * want,
        "A message has n / p words, also where that is no integer: / divides exactly, // rounds down.": (
            rounds * 2.0 * (p - 1) * (n // p)
        ),
        "The words need not be an integer: / divides exactly, // rounds down.": rounds * 2 * (p - 1) * n // p,
        "A rank keeps one of p chunks: it sends p - 1 of them in each half, not p.": rounds * 2.0 * n,
    }


def number(value: object) -> float:
    """A number that was returned; NaN for anything else, such as an integer of more than 64 bits."""
    numbers = np.asarray(value if isinstance(value, int | float) else np.nan)
    return float(numbers) if numbers.dtype.kind in "biuf" else np.nan


def cause_of_all(answers: Sequence[object], known: Sequence[dict[str, float]]) -> str:
    """The mistake that gives all of the answers, since one small number does not identify it; "" if none does."""
    for sentence in known[0]:
        if all(np.isclose(number(got), each[sentence]) for got, each in zip(answers, known, strict=True)):
            return sentence
    return ""
