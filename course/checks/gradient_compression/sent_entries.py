"""Runs of `sparsify`: what is sent, what is kept, to the bit, and what known mistakes send and keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.judging import Answer, Wrong, expect
from course.probes.gradient_compression import steps_in_place
from minidl.random import Purpose, stream

Array = NDArray[Any]
Kept = tuple[Array, Array, Array]
"""(indices, values, the new residual)"""

THRESHOLD = 0.5
"""Not 1, whose square and root are 1 as well; some totals are equal to it."""


OWN_ARRAYS = "What was returned belongs to the caller: each call makes arrays of its own."


def sent(gradient: Array, residual: Array, threshold: float) -> Kept:
    """The oracle."""
    total = residual + gradient
    return split(total, np.abs(total) > threshold)


def split(total: Array, chosen: Array) -> Kept:
    indices = np.flatnonzero(chosen)
    return indices, total[indices], np.where(chosen, total.dtype.type(0), total)


def without_magnitude(gradient: Array, residual: Array, threshold: float) -> Kept:
    total = residual + gradient
    return split(total, total > threshold)


def with_the_threshold(gradient: Array, residual: Array, threshold: float) -> Kept:
    total = residual + gradient
    return split(total, np.abs(total) >= threshold)


def chosen_by_the_gradient(gradient: Array, residual: Array, threshold: float) -> Kept:
    return split(residual + gradient, np.abs(gradient) > threshold)


def the_gradient_is_sent(gradient: Array, residual: Array, threshold: float) -> Kept:
    indices, _, kept = sent(gradient, residual, threshold)
    return indices, gradient[indices], kept


def without_memory(gradient: Array, residual: Array, threshold: float) -> Kept:
    indices, values, _ = split(gradient, np.abs(gradient) > threshold)
    return indices, values, np.zeros_like(residual)


def are_equal(some: Sequence[Any], others: Sequence[Any]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(some, others, strict=True))


def never_sent(gradient: Array, residual: Array, threshold: float) -> Kept:
    return split(gradient, np.abs(gradient) > threshold)


def nothing_is_cleared(gradient: Array, residual: Array, threshold: float) -> Kept:
    indices, values, _ = sent(gradient, residual, threshold)
    return indices, values, residual + gradient


def only_the_gradient_is_kept(gradient: Array, residual: Array, threshold: float) -> Kept:
    indices, values, kept = sent(gradient, residual, threshold)
    return indices, values, np.where(kept != 0, gradient, kept)


def the_threshold_is_kept(gradient: Array, residual: Array, threshold: float) -> Kept:
    """What is above the threshold is sent, and the threshold itself stays."""
    total = residual + gradient
    indices = np.flatnonzero(np.abs(total) > threshold)
    above = (total - np.sign(total) * np.float32(threshold))[indices]
    kept = total.copy()
    kept[indices] = (np.sign(total) * np.float32(threshold))[indices]
    return indices, above, kept


def sign_times_threshold(gradient: Array, residual: Array, threshold: float) -> Kept:
    """The rule of Strom (Interspeech 2015): the threshold with the sign is sent, the rest stays."""
    total = residual + gradient
    indices = np.flatnonzero(np.abs(total) > threshold)
    values = (np.sign(total) * np.float32(threshold))[indices]
    kept = total.copy()
    kept[indices] -= values
    return indices, values, kept


def compared_before_rounding(gradient: Array, residual: Array, threshold: float) -> Kept:
    exact = residual.astype(np.float64) + gradient
    return split(exact.astype(np.float32), np.abs(exact) > threshold)


def squared(gradient: Array, residual: Array, threshold: float) -> Kept:
    total = residual + gradient
    return split(total, total**2 > threshold)


def subtracted(gradient: Array, residual: Array, threshold: float) -> Kept:
    total = gradient - residual
    return split(total, np.abs(total) > threshold)


MISTAKES: dict[str, Callable[[Array, Array, float], Kept]] = {
    "|total| > threshold compares the magnitude: large negative entries are to be sent, too.": without_magnitude,
    "An entry of exactly the threshold is kept: > and not >=.": with_the_threshold,
    "Nothing is kept. What is not sent stays in `residual`, in place: residual = residual + gradient makes a new array "
    "that the caller does not see.": without_memory,
    "What is kept is never sent: the residual is to be added to the gradient.": never_sent,
    "The gradient alone was compared with the threshold: compare the total with the residual.": chosen_by_the_gradient,
    "The gradient alone was sent: what waited in the residual is lost.": the_gradient_is_sent,
    "The entries that are sent stay in the residual: they would be sent again.": nothing_is_cleared,
    "The residual holds the last gradient alone: what was kept before is lost.": only_the_gradient_is_kept,
    "The threshold was subtracted from what is sent: the whole entry is to be sent.": the_threshold_is_kept,
    "The threshold was sent in place of the entry: the whole entry is to be sent.": sign_times_threshold,
    "The total was compared before it was rounded to float32: round it once, then compare.": compared_before_rounding,
    "The square was compared with the threshold: compare the magnitude.": squared,
    "The residual was subtracted from the gradient: add it.": subtracted,
}


@dataclass(frozen=True)
class Run:
    """The steps of an answer: before each, the gradient and the right residual; and what the probe saw."""

    gradients: list[Array]
    residuals: list[Array]
    threshold: float
    seen: dict[str, Any]

    def called(self, step: int) -> str:
        return f"sparsify, n={len(self.gradients[step])}, threshold={self.threshold:g}, step {step}"

    def right(self, step: int) -> Kept:
        return sent(self.gradients[step], self.residuals[step], self.threshold)

    def likely(self, step: int) -> str:
        """The sentence of the known mistake that sends and keeps what the answer did, up to this step; "" if none.

        A mistake that sends and keeps what is right in all of these steps is not the cause.
        """
        for sentence, rule in MISTAKES.items():
            residual, is_right = self.residuals[0], True
            for number, (returned, (held,)) in enumerate(
                zip(self.seen["returned"][: step + 1], self.seen["held"], strict=False)
            ):
                made = rule(self.gradients[number], residual, self.threshold)
                residual = made[2]
                if not are_equal((*returned, held), made):
                    break
                is_right = is_right and are_equal(made, self.right(number))
            else:
                if not is_right:
                    return sentence
        return ""

    @contextmanager
    def with_cause(self, step: int) -> Iterator[None]:
        """Add the likely mistake to a Wrong that has no cause of its own."""
        try:
            yield
        except Wrong as wrong:
            raise Wrong(wrong.message, wrong.cause or self.likely(step)) from None

    def returned(self, step: int) -> tuple[Array, Any]:
        """The indices and the values of a step; Wrong if that is not what came back."""
        got = self.seen["returned"][step]
        if not isinstance(got, tuple) or len(got) != 2:
            raise Wrong(
                f"{self.called(step)}: expected (indices, values), got {expect.shown(got)}.", expect.not_a_value(got)
            )
        indices = expect.number_array(got[0], f"{self.called(step)}: indices", "an array of integers")
        if indices.size and indices.dtype.kind not in "iu":
            cause = "np.flatnonzero makes indices of a mask." if indices.dtype.kind == "b" else ""
            raise Wrong(f"{self.called(step)}: indices: expected integers, got {indices.dtype}.", cause)
        return indices, got[1]


def gradients_of(n: int, steps: int, seed: int) -> list[Array]:
    """Gradients of quarters, so that totals meet the threshold, and of any float32 numbers, which round."""
    rng, is_rounding = stream(Purpose.MANUAL, seed, "gradients", n), np.arange(n) % 2 == 1
    made = []
    for _ in range(steps):
        quarters, rounding = rng.integers(-6, 7, n) / 4, rng.normal(0.0, 0.5, n)
        made.append(np.where(is_rounding, rounding, quarters).astype(np.float32))
    return made


def run(answer: Answer, gradients: Sequence[Array], threshold: float, kept: Array | None = None) -> Run:
    """Let the answer make all steps. kept: the residual before the first; zeros if None."""
    residual = np.zeros_like(gradients[0]) if kept is None else kept
    seen = answer.run(steps_in_place, list(gradients), [residual], [[threshold]] * len(gradients))
    residuals = []
    for gradient in gradients:
        residuals.append(residual)
        residual = sent(gradient, residual, threshold)[2]
    return Run(list(gradients), residuals, threshold, seen)


def compare_sent(one: Run) -> None:
    """Raise Wrong unless the right entries were sent in every step."""
    for step in range(len(one.gradients)):
        indices, values = one.returned(step)
        want, total, _ = one.right(step)
        called = one.called(step)
        slips = {}
        if np.array_equal(np.sort(indices), want):
            slips["The indices are to be in ascending order."] = indices
        with one.with_cause(step):
            expect.array(indices, want, f"{called}: indices", rtol=0, atol=0, mistakes=slips)
            expect.array(values, total, f"{called}: values", rtol=1e-6, atol=1e-7)


def compare_bits(one: Run) -> None:
    """Raise Wrong unless what is sent and what is kept have the bits of the total, and the gradient is as it was."""
    compare_sent(one)
    expect.true(not one.seen["is_overwritten"], f"{one.called(0)}: a later step changed what it returned.", OWN_ARRAYS)
    if one.seen["is_gradient_changed"]:
        raise Wrong(f"{one.called(0)}: the gradient was changed.", "gradient += residual writes into the gradient.")
    zero = np.float32(0)  # -0.0 + 0.0 is 0.0
    for step in range(len(one.gradients)):
        _, total, kept = one.right(step)
        called, held = one.called(step), one.seen["held"][step][0]
        with one.with_cause(step):
            if total.size:
                expect.same_bits(one.returned(step)[1] + zero, total + zero, f"{called}: values")
            expect.same_bits(held + zero, kept + zero, f"{called}: residual")


CORNERS: dict[str, tuple[list[list[float]], float]] = {
    "nothing is sent": ([[0.5, -0.25], [0.25, -0.5]], 1.0),
    "all is sent": ([[2.0, -3.0, 4.0]], 1.0),
    "an empty gradient": ([[]], 1.0),
    "threshold 0": ([[0.0, -0.125, 0.25, 0.0]], 0.0),
    "a total that rounds to the threshold": ([[2.0**-25, -(2.0**-25), 1.0], [1.0, -1.0, -0.5]], 1.0),
    "numbers whose squares are 0 in float32": ([[1e-30, -3e-30, 2e-30]], 1.5e-30),
    "large numbers": ([[1e30, -1.0, 3e-30], [-1e30, 2.0, 1e-30]], 1.5),
}


def corners(answer: Answer) -> list[Run]:
    """Runs of few entries: nothing, everything, no entries, a threshold of 0, rounding, and numbers of all sizes."""
    return [run(answer, [np.array(row, np.float32) for row in rows], limit) for rows, limit in CORNERS.values()]
