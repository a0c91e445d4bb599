"""Runs of `corrected_entries`: its steps, and the displacement of dense momentum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from course.checks.gradient_compression.sent_entries import OWN_ARRAYS
from course.checks.gradient_compression.velocity_steps import MISTAKES, Kept, Step
from course.judging import Answer, Wrong, expect
from course.plural import counted
from course.probes.gradient_compression import steps_in_place
from minidl.random import Purpose, stream

Array = NDArray[Any]

Constant = tuple[float, int, int]
"""(m, steps until the entries are sent, nodes)"""

Case = tuple[int, int, int, float]
"""(n, steps, k, m)"""

ROUNDING = 1e-12

UNSTABLE = "Of equal magnitudes, the lower index comes first: np.argsort keeps their order with kind='stable' alone."


@dataclass(frozen=True)
class Run:
    """The steps of an answer, and what the probe saw."""

    steps: list[Step]
    seen: dict[str, Any]

    def called(self, number: int) -> str:
        step = self.steps[number]
        settings = f"n={len(step.gradient)}, m={step.m:g}, k={step.k}, masking={step.masking}"
        return f"corrected_entries, {settings}, step {number}"

    def returned(self, number: int) -> tuple[Array, Array]:
        """The indices and the values of a step; Wrong if that is not what came back."""
        got, step = self.seen["returned"][number], self.steps[number]
        called = self.called(number)
        if not isinstance(got, tuple) or len(got) != 2:
            raise Wrong(f"{called}: expected (indices, values), got {expect.shown(got)}.", expect.not_a_value(got))
        indices, values = (
            expect.number_array(each, f"{called}: {name}", f"an array of {step.k}")
            for each, name in zip(got, ("indices", "values"), strict=True)
        )
        if indices.shape != (step.k,) or values.shape != (step.k,):
            cause = "Exactly k entries are sent, also where the largest are 0." if len(indices) < step.k else ""
            cause = "x[-k:] is all of x if k is 0: then nothing is sent." if step.k == 0 else cause
            raise Wrong(
                f"{called}: expected {step.k} indices and values, got {indices.shape} and {values.shape}.", cause
            )
        if indices.size and indices.dtype.kind not in "iu":
            raise Wrong(f"{called}: indices: expected integers, got {indices.dtype}.")
        n = len(step.gradient)
        if len(set(indices.tolist())) < step.k or not all(0 <= index < n for index in indices.tolist()):
            raise Wrong(f"{called}: expected {step.k} different indices from 0 to {n - 1}, got {indices.tolist()}.")
        return indices, values


def run(
    answer: Answer, gradients: Sequence[Array], ks: Sequence[int], m: float, masking: bool,
    before: tuple[Array, Array] | None = None,
) -> Run:  # fmt: skip
    """Let the answer make a step for each gradient. before: velocity and what waits; zeros if None."""
    u, waiting = before or (np.zeros_like(gradients[0]),) * 2
    settings = [[m, k, masking] for k in ks]
    seen = answer.run(steps_in_place, list(gradients), [u, waiting], settings)
    steps = []
    for gradient, k in zip(gradients, ks, strict=True):
        steps.append(Step(gradient, u, waiting, m, k, masking))
        after = steps[-1].after()
        u, waiting = after.velocity, after.waiting
    return Run(steps, seen)


def random_run(answer: Answer, case: Case, seed: int, masking: bool) -> Run:
    """Random gradients, k entries in each step."""
    n, steps, k, m = case
    rng = stream(Purpose.MANUAL, seed, "gradients with momentum", n, steps, k)
    return run(answer, [rng.normal(size=n) for _ in range(steps)], [k] * steps, m, masking)


def tied_runs(answer: Answer) -> list[Run]:
    """Equal and nearly equal magnitudes, all entries, none, zeros, and many equal ones: sorts are stable for few."""
    rows = [[1.0, -1.0, 1.0, 0.5], [0.0, 0.0, 0.0, 0.0], [2.0, -3.0, 2.0, -3.0], [0.0, 1.0, -1.0, 0.0]]
    many = np.resize([1.0, -2.0, 2.0, -1.0, 2.0], 64)
    near = np.array([1.0, -1.0 - 1e-11, 1.0 + 2e-11, 3e-9])
    return [
        run(answer, [np.array(row) for row in rows], [2, 0, 4, 1], 0.5, False),
        run(
            answer,
            [np.array([0.0, 0.0, -2.0]), np.zeros(3)],
            [2, 2],
            0.0,
            False,
            (np.zeros(3), np.array([0.0, 0.0, 3.0])),
        ),
        run(answer, [many, -many], [20, 30], 0.5, False),
        run(answer, [near, -near], [2, 1], 0.5, False, (near / 4, -near / 2)),
    ]


def dense_displacement(m: float, steps: int) -> float:
    """How far a constant gradient of 1 moves an entry in so many steps of dense momentum, for a rate of 1."""
    return steps / (1 - m) - m * (1 - m**steps) / (1 - m) ** 2


def drawn_constant(seed: int) -> list[Constant]:
    """Two random cases."""
    rng = stream(Purpose.MANUAL, seed, "momentum, steps and nodes")
    return [(float(rng.uniform(0.3, 0.98)), int(rng.integers(2, 20)), int(rng.integers(2, 5))) for _ in range(2)]


def compare_constant(answer: Answer, case: Constant, seed: int) -> None:
    """Raise Wrong unless entries that wait on all nodes under constant gradients have moved as with dense momentum."""
    m, steps, nodes = case
    rng = stream(Purpose.MANUAL, seed, "constant gradients", steps, nodes)
    gradients = np.round(rng.uniform(0.5, 1.5, (nodes, 3)) * [1.0, -0.5, 0.25], 2)
    got, summed, factor = np.zeros(3), gradients.sum(axis=0), dense_displacement(m, steps)
    slips = {
        "The entries have moved by the gradients alone, without the momentum of the steps in which they waited.": (
            summed * steps
        ),
        "The entries have moved by the last velocity alone; what waits is the sum of all velocities.": (
            summed * (1 - m**steps) / (1 - m)
        ),
        "The gradient was multiplied by 1 - m.": summed * (1 - m) * factor,
    }
    mistaken = {sentence: np.zeros(3) for sentence in MISTAKES}
    for gradient in gradients:
        one = run(answer, [gradient] * steps, [0] * (steps - 1) + [3], m, False)
        for number in range(steps):
            indices, values = one.returned(number)
            got[indices] += values
        for sentence in MISTAKES:
            mistaken[sentence] += under(one.steps, sentence)[0]
    slips = {
        sentence: value for sentence, value in (mistaken | slips).items() if not np.allclose(value, summed * factor)
    }
    expect.array(
        got,
        summed * factor,
        f"corrected_entries, a constant gradient on each of {counted(nodes, 'node')}, m={m:.4g}, all entries sent in "
        f"step {steps - 1}: the sum of what was sent",
        rtol=1e-10,
        mistakes={name: slips[name] for name in sorted(slips, key=lambda name: name in MISTAKES)},
    )


def compare_displacement(one: Run) -> None:
    """Raise Wrong unless what was sent and what waits add up to the displacement of dense momentum."""
    n, sent, u, dense = len(one.steps[0].gradient), 0.0, 0.0, 0.0
    total = np.zeros(n)
    for number, step in enumerate(one.steps):
        indices, values = one.returned(number)
        total[indices] += values
        u = step.m * u + step.gradient
        dense = dense + u
        sent = total + one.seen["held"][number][1]
        expect.array(
            sent,
            np.asarray(dense),
            f"{one.called(number)}: what was sent so far, and what waits",
            rtol=0,
            atol=ROUNDING * (1 + float(np.abs(dense).max())),
            mistakes=wrong_sums(one, number, np.asarray(dense)),
        )


def under(steps: Sequence[Step], sentence: str) -> tuple[Array, Array]:
    """What was sent in all, and what waits, after these steps under a known mistake."""
    u = waiting = total = np.zeros(len(steps[0].gradient))
    for step in steps:
        kept = Step(step.gradient, u, waiting, step.m, step.k, step.masking).after(MISTAKES[sentence])
        total = total.copy()
        total[kept.indices] += kept.values
        u, waiting = kept.velocity, kept.waiting
    return total, waiting


def wrong_sums(one: Run, number: int, right_sum: Array) -> dict[str, Array]:
    """What was sent and what waits, added up, under known mistakes; where that is not right."""
    found = {sentence: sum(under(one.steps[: number + 1], sentence)) for sentence in MISTAKES}
    return {sentence: value for sentence, value in found.items() if not np.allclose(value, right_sum)}


def compare_steps(one: Run) -> None:
    """Raise Wrong unless each step sends and keeps the right numbers, and leaves the gradient as it was."""
    expect.true(not one.seen["is_overwritten"], f"{one.called(0)}: a later step changed what it returned.", OWN_ARRAYS)
    if one.seen["is_gradient_changed"]:
        raise Wrong(f"{one.called(0)}: the gradient was changed.")
    for number, step in enumerate(one.steps):
        want, called = step.after(), one.called(number)
        indices, values = one.returned(number)
        order, right_order = np.argsort(indices), np.argsort(want.indices)
        wrong = [step.after(rule) for rule in MISTAKES.values()]
        magnitudes = np.abs(step.waiting + step.m * step.velocity + step.gradient)
        is_tie = np.array_equal(np.sort(magnitudes[indices]), np.sort(magnitudes[want.indices]))
        made = Kept(indices, values, *one.seen["held"][number])
        for name, got, right_one, mistaken in (
            ("indices", indices[order], want.indices[right_order], [np.sort(each.indices) for each in wrong]),
            (
                "values, by index",
                values[order],
                want.values[right_order],
                [each.values[np.argsort(each.indices)] for each in wrong],
            ),
            ("velocity", one.seen["held"][number][0], want.velocity, [each.velocity for each in wrong]),
            ("waiting", one.seen["held"][number][1], want.waiting, [each.waiting for each in wrong]),
        ):
            slips = {
                sentence: value
                for sentence, value in zip(MISTAKES, mistaken, strict=True)
                if value.shape != right_one.shape or not np.allclose(value, right_one, rtol=1e-9)
            }
            if name == "indices":  # indices agree by chance: a mistake is named if all that it makes agrees
                slips = {s: got for s, each in zip(MISTAKES, wrong, strict=True) if are_alike(made, each)}
                slips |= {UNSTABLE: got} if is_tie else {}
            if name in ("velocity", "waiting"):
                before = step.velocity if name == "velocity" else step.waiting
                if not np.allclose(before, right_one):
                    slips["It is as it was: velocity and waiting are to be written, by *=, += or [...] =."] = before
            scale = ROUNDING * (1 + float(np.abs(right_one).max(initial=0.0)))
            expect.array(got, right_one, f"{called}: {name}", rtol=0, atol=scale, mistakes=slips)


def are_alike(some: Kept, others: Kept) -> bool:
    """Whether two steps send and keep the same numbers, up to rounding and to the order of the entries."""
    first, second = np.argsort(some.indices), np.argsort(others.indices)
    return np.array_equal(some.indices[first], others.indices[second]) and all(
        np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-9)
        for a, b in (
            (some.values[first], others.values[second]),
            (some.velocity, others.velocity),
            (some.waiting, others.waiting),
        )
    )
