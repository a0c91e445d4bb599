"""Runs of `sparsify`: what is sent, what is kept, to the bit, and what known mistakes send and keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def nothing_is_cleared(gradient: Array, residual: Array, threshold: float) -> Kept:
    indices, values, _ = sent(gradient, residual, threshold)
    return indices, values, residual + gradient


def all_is_cleared(gradient: Array, residual: Array, threshold: float) -> Kept:
    indices, values, _ = sent(gradient, residual, threshold)
    return indices, values, np.zeros_like(residual)


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


def the_residual_stays(gradient: Array, residual: Array, threshold: float) -> Kept:
    indices, values, _ = sent(gradient, residual, threshold)
    return indices, values, residual


def subtracted(gradient: Array, residual: Array, threshold: float) -> Kept:
    total = gradient - residual
    return split(total, np.abs(total) > threshold)


MISTAKES: dict[str, Callable[[Array, Array, float], Kept]] = {
    "|total| > threshold compares the magnitude: large negative entries are to be sent, too.": without_magnitude,
    "An entry of exactly the threshold is kept: > and not >=.": with_the_threshold,
    "The residual was left out: the total of gradient and residual is compared and sent.": without_memory,
    "The gradient alone was compared with the threshold: compare the total with the residual.": chosen_by_the_gradient,
    "The gradient alone was sent: what waited in the residual is lost.": the_gradient_is_sent,
    "The entries that are sent stay in the residual: they would be sent again.": nothing_is_cleared,
    "The whole residual was cleared: only the sent entries are.": all_is_cleared,
    "The residual holds the last gradient alone: what was kept before is lost.": only_the_gradient_is_kept,
    "The threshold was subtracted from what is sent: the whole entry is to be sent.": the_threshold_is_kept,
    "The residual is as it was. It is to be written: residual[...] = ... or residual += ...; residual = ... makes a "
    "new array that the caller does not see.": the_residual_stays,
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

    def wrong(self, step: int, which: int) -> dict[str, Array]:
        """What known mistakes give for the indices, the values or the residual, where that is not right."""
        right = self.right(step)[which]
        made = {
            sentence: rule(self.gradients[step], self.residuals[step], self.threshold)[which]
            for sentence, rule in MISTAKES.items()
        }
        return {sentence: value for sentence, value in made.items() if not np.array_equal(value, right)}

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
    rng = stream(Purpose.MANUAL, seed, "gradients", n)
    quarters = [rng.integers(-5, 6, n) / 4 for _ in range(steps)]
    rounding = [rng.normal(0.0, 0.5, n) for _ in range(steps)]
    is_rounding = np.arange(n) % 2 == 1
    return [
        np.where(is_rounding, rough, even).astype(np.float32) for rough, even in zip(rounding, quarters, strict=True)
    ]


def run(answer: Answer, gradients: Sequence[Array], threshold: float) -> Run:
    """Let the answer make all steps, from a residual of zeros."""
    residual = np.zeros_like(gradients[0])
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
        slips = one.wrong(step, 0)
        if np.array_equal(np.sort(indices), want):
            slips["The indices are to be in ascending order."] = indices
        expect.array(indices, want, f"{called}: indices", rtol=0, atol=0, mistakes=slips)
        expect.array(values, total, f"{called}: values", rtol=1e-6, atol=1e-7, mistakes=one.wrong(step, 1))


def compare_bits(one: Run) -> None:
    """Raise Wrong unless what is sent and what is kept have the bits of the total, and the gradient is as it was."""
    compare_sent(one)
    if one.seen["is_gradient_changed"]:
        raise Wrong(f"{one.called(0)}: the gradient was changed.", "gradient += residual writes into the gradient.")
    for step in range(len(one.gradients)):
        _, total, kept = one.right(step)
        called = one.called(step)
        slips = one.wrong(step, 2)
        if total.size:
            expect.same_bits(one.returned(step)[1] + np.float32(0), total + np.float32(0), f"{called}: values")
        expect.same_bits(one.seen["held"][step][0] + np.float32(0), kept + np.float32(0), f"{called}: residual", slips)


CORNERS: dict[str, tuple[list[list[float]], float]] = {
    "nothing is sent": ([[0.5, -0.25], [0.25, -0.5]], 1.0),
    "all is sent": ([[2.0, -3.0, 4.0]], 1.0),
    "an empty gradient": ([[]], 1.0),
    "threshold 0": ([[0.0, -0.125, 0.25, 0.0]], 0.0),
    "large numbers": ([[1e30, -1.0, 3e-30], [-1e30, 2.0, 1e-30]], 1.5),
}


def corners(answer: Answer) -> list[Run]:
    """Runs of few entries: nothing, everything, no entries, a threshold of 0, and numbers of all sizes."""
    return [run(answer, [np.array(row, np.float32) for row in rows], limit) for rows, limit in CORNERS.values()]
