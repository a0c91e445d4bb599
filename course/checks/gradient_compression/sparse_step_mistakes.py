"""One step of top-k on all ranks: the weights and residuals after the right one, and after known mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

RATES = (0.3, 0.07)


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
    def lr(self) -> float:
        """The learning rate, which differs from step to step."""
        return RATES[self.number % 2]

    @property
    def totals(self) -> list[Array]:
        return [residual + gradient for residual, gradient in zip(self.residuals, self.gradients, strict=True)]

    def after(self, rule: Rule | None = None) -> tuple[Array, list[Array]]:
        """The weights and the residuals after the step; rule: another one than the right one."""
        chosen = [top(total, self.k) for total in self.totals]
        if rule is not None:
            return rule(self, chosen)
        mean = added(self, chosen, self.totals) / self.p
        return self.w - self.lr * mean, [
            cleared(total, those) for total, those in zip(self.totals, chosen, strict=True)
        ]

    def arguments(self) -> list[tuple[Any, ...]]:
        """Those of every rank."""
        return [
            (self.w.copy(), gradient.copy(), residual.copy(), self.k, self.lr)
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
    return np.asarray(step.w - step.lr * direction)


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


def before_rounding(step: Step, _: list[Array]) -> tuple[Array, list[Array]]:
    exact = [each.astype(np.float64) + gradient for each, gradient in zip(step.residuals, step.gradients, strict=True)]
    chosen = [top(total, step.k) for total in exact]
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
    "The step goes up: w - lr * mean.": with_weights(lambda step, total: step.w + step.lr * total / step.p),
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
    "The whole residual was cleared.": with_residuals(lambda step, rank, those: np.zeros_like(step.residuals[rank])),
    "There is no memory: the residual is not added to the gradient.": without_memory,
    "The residual is kept, but not added to the next gradient.": kept_anew,
    "The entries were chosen by the gradient; choose by the total of gradient and residual.": of_the_gradient,
    "The entries were chosen before the total was rounded to float32: round it once, then choose.": before_rounding,
    "All entries were added up: that is the dense step.": dense,
    "The entries were chosen from the sum of all ranks; each rank chooses its own.": of_the_sum,
    "The residual still has the entries that were sent: they would be sent again.": with_residuals(
        lambda step, rank, those: step.totals[rank]
    ),
    "The residual was cleared where any rank has sent; a rank clears only what it has sent itself.": with_residuals(
        lambda step, rank, those: cleared(
            step.totals[rank], np.concatenate([top(each, step.k) for each in step.totals])
        )
    ),
    "The residual lacks what it had before.": with_residuals(
        lambda step, rank, those: cleared(step.gradients[rank], those)
    ),
    "The learning rate is in the residual: it is kept in the unit of the gradient.": with_residuals(
        lambda step, rank, those: np.float32(step.lr) * cleared(step.totals[rank], those)
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
