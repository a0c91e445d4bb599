"""Runs of `top_k_step`: the weights of serial steps, what each rank keeps, the one all-gather, and known mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect
from course.judging.ranks.rank_run import RankRun
from minidl.random import Purpose, stream

Array = NDArray[Any]

Case = tuple[int, int, int]
"""(p, n, k)"""

LR = 0.25
ROUNDING = 1e-12

UNSTABLE = "Of equal magnitudes, the lower index comes first: np.argsort keeps their order with kind='stable' alone."


@dataclass(frozen=True)
class Step:
    """A step of all ranks before it is made."""

    w: Array
    gradients: list[Array]
    residuals: list[Array]
    k: int
    number: int = 0

    @property
    def p(self) -> int:
        return len(self.gradients)

    @property
    def totals(self) -> list[Array]:
        return [residual + gradient for residual, gradient in zip(self.residuals, self.gradients, strict=True)]

    def after(self, rule: Rule | None = None) -> tuple[Array, list[Array]]:
        """The weights and the residuals after the step; rule: another one than the right one."""
        chosen = [top(total, self.k) for total in self.totals]
        if rule is not None:
            return rule(self, chosen)
        mean = added(self, chosen, self.totals) / self.p
        return self.w - LR * mean, [cleared(total, those) for total, those in zip(self.totals, chosen, strict=True)]

    def arguments(self) -> list[tuple[Any, ...]]:
        """Those of every rank."""
        return [
            (self.w.copy(), gradient.copy(), residual.copy(), self.k, LR)
            for gradient, residual in zip(self.gradients, self.residuals, strict=True)
        ]

    def called(self, rank: int) -> str:
        return f"top_k_step on rank {rank} of {self.p}, n={len(self.w)}, k={self.k}, step {self.number}"


Rule = Callable[[Step, list[Array]], tuple[Array, list[Array]]]


def top(total: Array, k: int) -> Array:
    """The k entries of the largest magnitude; of equal ones that with the lower index first."""
    return np.argsort(-np.abs(total), kind="stable")[:k]


def added(step: Step, chosen: list[Array], values: list[Array]) -> Array:
    """The sum of the chosen values of all ranks, in the order of the ranks, in float64."""
    total = np.zeros_like(step.w)
    for those, each in zip(chosen, values, strict=True):
        total[those] += each[those]
    return total


def cleared(total: Array, chosen: Array) -> Array:
    kept = total.copy()
    kept[chosen] = 0
    return kept


def kept_of(step: Step, chosen: list[Array]) -> list[Array]:
    return [cleared(total, those) for total, those in zip(step.totals, chosen, strict=True)]


def moved(step: Step, direction: Array) -> Array:
    return np.asarray(step.w - LR * direction)


def overwritten(step: Step, chosen: list[Array]) -> tuple[Array, list[Array]]:
    """Where two ranks have sent an entry, the last one counts."""
    total = np.zeros_like(step.w)
    for those, each in zip(chosen, step.totals, strict=True):
        total[those] = each[those]
    return moved(step, total / step.p), kept_of(step, chosen)


def by_value(step: Step, _: list[Array]) -> tuple[Array, list[Array]]:
    chosen = [np.argsort(-total, kind="stable")[: step.k] for total in step.totals]
    return moved(step, added(step, chosen, step.totals) / step.p), kept_of(step, chosen)


def smallest(step: Step, _: list[Array]) -> tuple[Array, list[Array]]:
    chosen = [np.argsort(np.abs(total), kind="stable")[: step.k] for total in step.totals]
    return moved(step, added(step, chosen, step.totals) / step.p), kept_of(step, chosen)


def of_the_gradient(step: Step, _: list[Array]) -> tuple[Array, list[Array]]:
    chosen = [top(gradient, step.k) for gradient in step.gradients]
    return moved(step, added(step, chosen, step.totals) / step.p), kept_of(step, chosen)


def without_memory(step: Step, _: list[Array]) -> tuple[Array, list[Array]]:
    chosen = [top(gradient, step.k) for gradient in step.gradients]
    return moved(step, added(step, chosen, step.gradients) / step.p), [np.zeros_like(each) for each in step.residuals]


def kept_anew(step: Step, _: list[Array]) -> tuple[Array, list[Array]]:
    """The residual of this gradient is kept, but that of earlier ones neither sent nor kept."""
    chosen = [top(gradient, step.k) for gradient in step.gradients]
    kept = [cleared(gradient, those) for gradient, those in zip(step.gradients, chosen, strict=True)]
    return moved(step, added(step, chosen, step.gradients) / step.p), kept


def dense(step: Step, chosen: list[Array]) -> tuple[Array, list[Array]]:
    total = np.sum([each.astype(np.float64) for each in step.totals], axis=0)
    return moved(step, total / step.p), kept_of(step, chosen)


def of_the_sum(step: Step, _: list[Array]) -> tuple[Array, list[Array]]:
    """The k largest of the sum of all ranks, which nobody knows before it was added up."""
    total = np.sum(step.totals, axis=0)
    chosen = [top(total, step.k)] * step.p
    return moved(step, added(step, chosen, step.totals) / step.p), kept_of(step, chosen)


def with_weights(change: Callable[[Step, Array], Array]) -> Rule:
    """The right residuals with other weights, made from the sum of what was sent."""

    def rule(step: Step, chosen: list[Array]) -> tuple[Array, list[Array]]:
        return change(step, added(step, chosen, step.totals)), kept_of(step, chosen)

    return rule


def with_residuals(change: Callable[[Step, int, Array], Array]) -> Rule:
    """The right weights with other residuals."""

    def rule(step: Step, chosen: list[Array]) -> tuple[Array, list[Array]]:
        w, _ = step.after()
        return w, [change(step, rank, those) for rank, those in enumerate(chosen)]

    return rule


MISTAKES: dict[str, Rule] = {
    "The residual is as it was. It is to be written: residual[...] = ..., or residual += ...": with_residuals(
        lambda step, rank, those: step.residuals[rank]
    ),
    "Only the sum was taken: divide it by p.": with_weights(lambda step, total: moved(step, total)),
    "The step goes up: w - lr * mean.": with_weights(lambda step, total: step.w + LR * total / step.p),
    "The learning rate is missing.": with_weights(lambda step, total: step.w - total / step.p),
    "It was divided by how many ranks have sent the entry; divide by p.": with_weights(
        lambda step, total: moved(step, total / np.maximum(1, np.bincount(np.concatenate(
            [top(each, step.k) for each in step.totals]), minlength=len(step.w))))
    ),
    "It was divided by the number of entries sent, not by p.": with_weights(
        lambda step, total: moved(step, total / (step.p * step.k))
    ),
    "An entry that several ranks have sent is added up; here the last rank's has overwritten the others': use +=.": (
        overwritten
    ),
    "The k largest numbers were sent; those with the largest magnitude are to be sent, also negative ones.": by_value,
    "The k smallest magnitudes were sent.": smallest,
    "There is no memory: the residual is not added to the gradient.": without_memory,
    "The residual is kept, but not added to the next gradient.": kept_anew,
    "The entries were chosen by the gradient; choose by the total of gradient and residual.": of_the_gradient,
    "All entries were added up: that is the dense step.": dense,
    "The entries were chosen from the sum of all ranks; each rank chooses its own.": of_the_sum,
    "The residual still has the entries that were sent: they would be sent again.": with_residuals(
        lambda step, rank, those: step.totals[rank]
    ),
    "The whole residual was cleared.": with_residuals(lambda step, rank, those: np.zeros_like(step.residuals[rank])),
    "The residual lacks what it had before.": with_residuals(
        lambda step, rank, those: cleared(step.gradients[rank], those)
    ),
    "The learning rate is in the residual: it is kept in the unit of the gradient.": with_residuals(
        lambda step, rank, those: np.float32(LR) * cleared(step.totals[rank], those)
    ),
    "A residual of the sum of all ranks was kept: each rank keeps what it has left out itself.": with_residuals(
        lambda step, rank, those: np.sum(kept_of(step, [top(each, step.k) for each in step.totals]), axis=0)
    ),
}  # fmt: skip


def wrong(step: Step, rank: int | None) -> dict[str, Array]:
    """What known mistakes make of the weights, or of a rank's residual, where that is not right."""
    right = step.after()
    made = {}
    for sentence, rule in MISTAKES.items():
        w, residuals = step.after(rule)
        value, want = (w, right[0]) if rank is None else (residuals[rank], right[1][rank])
        if not np.allclose(value, want, rtol=1e-9, atol=1e-12):
            made[sentence] = value
    return made


Made = list[tuple[Step, RankRun]]
"""Steps, each with the answer's run of it."""


def runs(answer: Answer, case: Case, steps: int, seed: int) -> Made:
    """Let the answer make several steps, each from the right weights and residuals."""
    p, n, k = case
    rng = stream(Purpose.MANUAL, seed, "gradients of ranks", *case)
    w, residuals = rng.normal(size=n), [np.zeros(n, np.float32) for _ in range(p)]
    made = []
    for number in range(steps):
        shared = rng.normal(0.0, 1.0, n)  # so that ranks often choose the same entries
        gradients = [(shared + rng.normal(0.0, 0.7, n)).astype(np.float32) for _ in range(p)]
        step = Step(w, gradients, residuals, k, number)
        made.append((step, answer.on_ranks(step.arguments())))
        w, residuals = step.after()
    return made


def tied(answer: Answer) -> Made:
    """Steps with totals of equal magnitude and of both signs, with zeros, and with many: sorts are stable for few."""
    many = [np.resize(row, 64) for row in ([1.0, -2.0, 2.0, -1.0, 2.0], [-1.0, 1.0, 0.0])]
    made = []
    for rows, k in (
        ([[1.0, -2.0, 2.0, 0.5], [-1.0, 1.0, 1.0, -1.0]], 2),
        ([[0.0, 0.0, 0.0], [0.0, -3.0, 0.0], [3.0, 0.0, -3.0]], 1),
        (many, 20),
    ):
        kept = np.resize([0.25, -0.5, 0.75], len(rows[0])).astype(np.float32)
        gradients = [np.array(row, np.float32) - kept for row in rows]
        step = Step(np.arange(1.0, len(rows[0]) + 1), gradients, [kept] * len(rows), k)
        made.append((step, answer.on_ranks(step.arguments())))
    return made


def rounded(answer: Answer) -> Made:
    """A step whose sum depends on the order of the ranks: two small numbers count only if they are added first."""
    small = 0.3 * 2.0**-23  # a third of the distance of the numbers next to the large one
    gradients = [np.array([number, 0.0], np.float32) for number in (small, small, 1.5 * 2.0**29)]
    step = Step(np.zeros(2), gradients, [np.zeros(2, np.float32)] * 3, 1)
    return [(step, answer.on_ranks(step.arguments()))]


def compare_weights(made: Made) -> None:
    """Raise Wrong unless every rank returned the weights after the serial step, and left w and its gradient alone."""
    for step, run in made:
        want, _ = step.after()
        for rank in range(step.p):
            scale = ROUNDING * (1 + float(np.abs(want).max()))
            called = f"{step.called(rank)}: the weights"
            got = run.results[rank]
            slips = wrong(step, None)
            if isinstance(got, np.ndarray) and got.shape == want.shape and expect.close(got, want, 1e-6, 1e-6):
                slips["Almost: the sum was rounded to float32. Add up in an array of float64."] = got
            expect.array(got, want, called, rtol=0, atol=scale, mistakes=slips, dtype=np.float64)
            for place, name, before in ((0, "w", step.w), (1, "gradient", step.gradients[rank])):
                expect.same_bits(run.arguments[rank][place], before, f"{step.called(rank)}: the caller's {name}")


def compare_residuals(made: Made) -> None:
    """Raise Wrong unless every rank keeps the entries that it has not sent, to the bit."""
    for step, run in made:
        _, residuals = step.after()
        for rank in range(step.p):
            got, zero = run.arguments[rank][2], np.float32(0)  # -0.0 + 0.0 is 0.0
            expect.same_bits(
                got + zero, residuals[rank] + zero, f"{step.called(rank)}: the residual", wrong(step, rank)
            )


def compare_ties(made: Made) -> None:
    """`compare_residuals`, which names the likely mistake where totals are equal."""
    try:
        compare_residuals(made)
    except Wrong as wrong:
        raise Wrong(wrong.message, wrong.cause or UNSTABLE) from None


CAUSES = {
    "all_reduce": "That adds up the whole vectors, n numbers: nothing is saved.",
    "gather": "One rank would receive all entries, and would have to send them on.",
    "broadcast": "comm.all_gather brings every rank the messages of all others.",
    "barrier": "The all-gather itself waits for all ranks.",
}


def compare_traffic(made: Made) -> None:
    """Raise Wrong unless every rank made one all-gather of 8 k bytes, and nothing else."""
    for step, run in made:
        expected = "expected one comm.all_gather of a message of k entries and no other communication"
        for rank in range(step.p):
            called = step.called(rank)
            others = [name for name in run.operations[rank] if name != "all_gather"]
            if others:
                raise Wrong(f"{called}: {expected}, got comm.{others[0]}.", CAUSES.get(others[0], ""))
            own = run.collectives[rank]
            if step.p > 1 and len(own) != 1:
                cause = "`pairs` puts indices and values into one message." if own else "Nothing was communicated."
                raise Wrong(f"{called}: {expected}, got {len(own)} all-gathers.", cause)
            most = 8 * step.k * (step.p - 1)
            if step.p > 1 and own[0].nbytes != most:
                is_fewer = own[0].nbytes < most
                sizes = {12: "with int64 indices or float64 values", 16: "in 8 bytes an index and 8 a value"}
                each = own[0].nbytes / (step.p - 1) / step.k
                is_whole = own[0].nbytes == 4 * len(step.w) * (step.p - 1)
                cause = f"The entries are sent {sizes[int(each)]}, or more than k are." if each in sizes else ""
                cause = "The whole vector is sent, with its zeros." if is_whole else cause
                cause = "Exactly k entries are sent, also where the largest are 0." if is_fewer else cause
                raise Wrong(
                    f"{called}: expected {most} bytes sent, 8 k to each of {step.p - 1} ranks, got {own[0].nbytes}.",
                    cause,
                )


def compare_bits(made: Made) -> None:
    """Raise Wrong unless all ranks returned the same bits, of the right weights."""
    compare_weights(made)
    for step, run in made:
        first = expect.number_array(run.results[0], step.called(0), "an array")
        for rank in range(1, step.p):
            expect.same_bits(
                run.results[rank],
                first,
                f"{step.called(rank)}: compared with rank 0",
                {"Add up in the order of the ranks on every rank, the own entries in their place.": run.results[rank]},
            )
